import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { PackOptions } from '@shardtool/writer';
import { TIMES } from './repetitions.js';

const child = fileURLToPath(new URL('./pack-child.mjs', import.meta.url));
/** No pack in a test takes this long, except with many repetitions on a busy machine. */
const LIMIT_MS = 60_000 * Math.min(TIMES, 5);

/** A pack in a separate process. */
export interface PackProcess {
  readonly process: ChildProcess;
  /** The result: its output, or null if it was killed. */
  readonly ended: Promise<{ readonly code: number | null; readonly stdout: string }>;
}

/** Starts a pack; `shell` is a line of bash that runs before it. */
export function startPack(source: string, output: string, options: PackOptions, shell = ''): PackProcess {
  const args = [child, source, output, JSON.stringify(options)];
  const started = spawn('bash', ['-c', `${shell} exec "$@"`, 'bash', process.execPath, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let stdout = '';
  const limit = setTimeout(() => {
    stdout += `it did not end within ${LIMIT_MS / 1000} s`;
    started.kill('SIGKILL');
  }, LIMIT_MS);
  started.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk;
  });
  const ended = once(started, 'close').then(([code]) => {
    clearTimeout(limit);
    return { code: code as number | null, stdout };
  });
  return { process: started, ended };
}

/** A pack that ends by itself. */
export function packInProcess(source: string, output: string, options: PackOptions, shell = '') {
  return startPack(source, output, options, shell).ended;
}
