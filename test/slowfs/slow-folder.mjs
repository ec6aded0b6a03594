// A folder with the latency of a network file system, for tests and benches: see slowfs.c.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const SOURCE = path.join(import.meta.dirname, 'slowfs.c');

/** Builds slowfs into a folder; null, and a line on standard error, where that or mounting is not possible here. */
export function buildSlowfs(folder) {
  const binary = path.join(folder, 'slowfs');
  try {
    if (!existsSync('/dev/fuse')) throw new Error('there is no /dev/fuse');
    const flags = execFileSync('pkg-config', ['--cflags', '--libs', 'fuse3'], { stdio: 'pipe' }).toString().trim();
    execFileSync('gcc', ['-O2', SOURCE, '-o', binary, ...flags.split(/\s+/)], { stdio: 'pipe' });
    execFileSync('fusermount3', ['--version'], { stdio: 'pipe' });
    return binary;
  } catch (error) {
    return skip(`slowfs cannot run here (${error.message.split('\n')[0]})`);
  }
}

/** Says so and returns null; where SHARDTOOL_REQUIRE_FUSE is set, as in CI, that is an error. */
function skip(why) {
  if (process.env.SHARDTOOL_REQUIRE_FUSE) throw new Error(`${why}: install fuse3, libfuse3-dev, pkg-config and gcc.`);
  console.error(`${why}, so what needs it is skipped.`);
  return null;
}

/**
 * Mounts a folder again. The caller unmounts it, which returns the maximum number of concurrent reads; between `stop` and
 * `goOn` every call hangs. If mounting is not allowed, prints that and returns null.
 */
export async function mountSlow(binary, folder, lookupUs, readUs) {
  const mount = mkdtempSync(path.join(tmpdir(), 'slowfs-'));
  const server = spawn(binary, [folder, mount, String(lookupUs), String(readUs)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  server.stderr.on('data', (text) => {
    said += text;
  });
  const ended = new Promise((resolve) => server.once('close', resolve));
  while (!isMounted(mount)) {
    if (server.exitCode !== null) {
      rmdirSync(mount);
      return skip(`slowfs cannot be mounted here (${said.trim()})`);
    }
    await sleep(5);
  }
  return {
    path: mount,
    stop: () => server.kill('SIGSTOP'),
    goOn: () => server.kill('SIGCONT'),
    async unmount() {
      server.kill('SIGCONT');
      try {
        execFileSync('fusermount3', ['-u', '-z', mount], { stdio: 'pipe' });
      } catch {
        server.kill('SIGTERM');
      }
      await ended;
      rmSync(mount, { recursive: true, force: true });
      return { readsAtOnce: Number(/(\d+) reads at once/.exec(said)?.[1]) };
    },
  };
}

function isMounted(folder) {
  return readFileSync('/proc/self/mounts', 'utf8').includes(` ${folder} `);
}
