import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FileTable } from '../file-table.js';
import { FOLDER_FILES } from '../folder/folder-files.js';
import { FilesAhead } from './files-ahead.js';
import { flightSetting, InFlight } from './in-flight.js';

let root: string;
let flight: InFlight;

beforeEach(() => {
  root = `${mkdtempSync(join(tmpdir(), 'ahead-'))}/`;
  flight = new InFlight(flightSetting(16, 10_000));
});
afterEach(() => {
  flight.close();
  rmSync(root, { recursive: true, force: true });
});

/** Returns a table of the files as they are now. */
function tableOf(names: readonly string[]): FileTable {
  const stats = names.map((name) => statSync(root + name));
  let end = 0;
  return {
    count: names.length,
    text: Buffer.from(names.join('')),
    ends: Float64Array.from(names, (name) => {
      end += name.length;
      return end;
    }),
    bytes: Float64Array.from(stats, ({ size }) => size),
    mtimeMs: Float64Array.from(stats, ({ mtimeMs }) => mtimeMs),
  };
}

async function contentOf(ahead: FilesAhead, file: number, bytes: number): Promise<string> {
  const [read] = await ahead.take(file, file + 1);
  const place = new Uint8Array(bytes);
  read!.put!(place);
  return Buffer.from(place).toString();
}

test('files are returned complete and in order, for any number of concurrent reads and any size', async () => {
  const names = Array.from({ length: 100 }, (_, i) => `${i}`);
  for (const [i, name] of names.entries()) writeFileSync(root + name, name.repeat(i === 50 ? 500_000 : i));
  const ahead = new FilesAhead(root, tableOf(names), flight, FOLDER_FILES, true);
  for (const [i, name] of names.entries()) {
    const text = name.repeat(i === 50 ? 500_000 : i);
    expect(await contentOf(ahead, i, text.length)).toBe(text);
  }
});

test('a file that was changed or deleted since it was measured is bad when its turn comes; other files are not affected', async () => {
  const names = ['grown', 'shrunk', 'touched', 'gone', 'good'];
  for (const name of names) writeFileSync(root + name, 'twelve bytes');
  const table = tableOf(names);
  writeFileSync(`${root}grown`, 'thirteen bytes');
  writeFileSync(`${root}shrunk`, 'eleven');
  utimesSync(`${root}touched`, 1, 1);
  rmSync(`${root}gone`);
  const ahead = new FilesAhead(root, table, flight, FOLDER_FILES, true);
  for (const file of [0, 1, 2])
    await expect(contentOf(ahead, file, 12)).rejects.toThrow('has changed since the pack began');
  await expect(contentOf(ahead, 3, 12)).rejects.toThrow('cannot be read: no such file or folder');
  expect(await contentOf(ahead, 4, 12)).toBe('twelve bytes');
});

test('a pipe that replaced a file is bad and is not waited for', async () => {
  for (const name of ['pipe', 'good']) writeFileSync(root + name, 'twelve bytes');
  const table = tableOf(['pipe', 'good']);
  rmSync(`${root}pipe`);
  execFileSync('sh', ['-c', 'mkfifo "$0"', `${root}pipe`]);
  const ahead = new FilesAhead(root, table, flight, FOLDER_FILES, true);
  await expect(contentOf(ahead, 0, 12)).rejects.toThrow('has changed since the pack began');
  expect(await contentOf(ahead, 1, 12)).toBe('twelve bytes');
});
