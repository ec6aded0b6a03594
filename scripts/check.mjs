/**
 * Checks formatting and lint, types of files that `tsc -b` does not include, unused exports, the language of texts, and options in
 * messages. The checks run concurrently, in one thread each.
 * With more threads, a compiler would check many files twice: 8 seconds of CPU time instead of 5.
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

/** Runs a check, and prints its output when it has ended. Returns whether it passed. */
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
