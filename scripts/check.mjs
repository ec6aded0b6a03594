/**
 * Formatting and lint, types of what `tsc -b` leaves out, unused exports, the language of texts, and options in messages: side by
 * side, in one thread each.
 * A compiler's own threads would check much of it twice: 8 seconds of processor time instead of 5.
 */
import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const CHECKS = [
  ['tsc', '-p', 'tsconfig.test.json', '--singleThreaded'],
  ['knip'],
  ['biome', 'check'],
  ['tsc', '-p', 'test/tsconfig.page.json', '--singleThreaded'],
  ['tsc', '-p', 'packages/cli/page', '--singleThreaded'],
  ['node', 'scripts/check-language.mjs'],
  ['node', 'scripts/check-sentences.mjs'],
];

/** What a check prints, shown whole when it has ended; whether it found nothing. */
function run([program, ...args]) {
  return new Promise((resolve) => {
    const file = program === 'node' ? process.execPath : path.join(root, 'node_modules/.bin', program);
    const child = spawn(file, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const printed = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => printed.push(chunk));
    child.on('error', (error) => printed.push(Buffer.from(`${error.message}\n`)));
    child.on('close', (code) => {
      process.stdout.write(Buffer.concat(printed));
      if (code !== 0) console.error(`failed: ${[program, ...args].join(' ')}`);
      resolve(code === 0);
    });
  });
}

const passed = await Promise.all(CHECKS.map(run));
process.exitCode = passed.every(Boolean) ? 0 : 1;
