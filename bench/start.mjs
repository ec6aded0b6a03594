/**
 * Compares the CPU time of short commands with that of a Node that does nothing, in turns.
 *
 *   npm run bench:start -- --rounds 15 --against ../before
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { rounds, against } = parseArgs({
  options: { rounds: { type: 'string', default: '15' }, against: { type: 'string' } },
}).values;
const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(path.join(os.tmpdir(), 'shardtool-start-'));
const shards = path.join(folder, 'shards');
const tool = (checkout) => path.join(checkout, 'packages/cli/lib/main.js');
execFileSync(process.execPath, [tool(root), 'pack', path.join(root, 'examples/photos'), shards, '--quiet']);

const WORDS = [['--version'], ['--help'], ['pack', '--help'], ['ls', shards]];
const commands = [
  ['node -e 0', ['-e', '0']],
  ...WORDS.map((words) => [`shardtool ${words.join(' ')}`.replace(shards, 'shards'), [tool(root), ...words]]),
  ...(against === undefined ? [] : WORDS.map((words) => [`${against}: ${words[0]}`, [tool(against), ...words]])),
];
const times = commands.map(() => []);
for (let round = 0; round < Number(rounds); round++) {
  for (const [i, [, words]] of commands.entries()) times[i].push(cpuMs(words));
}
rmSync(folder, { recursive: true });
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const base = median(times[0]);
for (const [i, [name]] of commands.entries()) {
  const own = median(times[i]);
  console.log(`${own.toFixed(0).padStart(5)} ms  ${(own / base).toFixed(2)} x  ${name}`);
}

/** CPU time of a Node with these arguments, as the shell's `times` counts it, in ms. */
function cpuMs(words) {
  const line = '"$0" "$@" >/dev/null; times';
  const { stdout } = spawnSync('bash', ['-c', line, process.execPath, ...words], { encoding: 'utf8' });
  const children = stdout
    .trim()
    .split('\n')[1]
    .matchAll(/(\d+)m([\d.]+)s/g);
  return Array.from(children, ([, minutes, seconds]) => Number(minutes) * 60_000 + Number(seconds) * 1000).reduce(
    (a, b) => a + b,
  );
}
