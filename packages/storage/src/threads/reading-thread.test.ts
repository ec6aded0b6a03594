import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'shardtool-reading-thread-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A thread that is slow to become ready, and slow to end. */
const THREAD = `
const { parentPort } = require('node:worker_threads');
parentPort.on('message', () => setTimeout(() => process.exit(), 100));
parentPort.postMessage({ kind: 'ready' });
`;

test('a thread that becomes ready or answers while it is being terminated is still awaited', () => {
  const thread = path.join(folder, 'thread.cjs');
  writeFileSync(thread, THREAD);
  const module = pathToFileURL('packages/storage/dist/threads/reading-thread.js').href;
  const program = `
    const { ReadingThread } = await import('${module}');
    const events = { free() { console.log('free'); }, ended: () => new Error('ended') };
    const thread = new ReadingThread(new URL('${pathToFileURL(thread).href}'), events);
    await thread.end();
    console.log('ended');
  `;
  // Nothing else keeps the process alive: if the wait never ends, Node exits with 13.
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, 'free\nended\n']);
});

test('no thread script awaits at top level, because V8 of Node 20 aborts if the thread is terminated there', () => {
  const scripts = readdirSync('packages')
    .flatMap((name) => filesBelow(path.join('packages', name, 'src')))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .map((file) => ({ file, text: readFileSync(file, 'utf8') }))
    .filter(({ text }) => text.includes('parentPort'));
  expect(scripts.length).toBeGreaterThan(3);
  expect(scripts.filter(({ text }) => /^(export |const [^=]+= |for )?await /m.test(text))).toEqual([]);
});

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => path.join(folder, name));
}
