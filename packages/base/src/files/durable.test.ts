import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FileError } from '../errors.js';
import { flushFolder, nameOnce, writeDurably } from './durable.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'durable-'));
});
afterAll(() => rm(folder, { recursive: true }));

test('a file is replaced as a whole, and its temporary file is gone', async () => {
  const path = join(folder, 'a.json');
  await writeFile(path, 'a longer text than the new one');
  await writeDurably(path, Buffer.from('new'));
  await flushFolder(folder);
  expect(await readFile(path, 'utf8')).toBe('new');
  expect(await readdir(folder)).toEqual(['a.json']);
});

test('where a file cannot be written, the error names it and nothing is left behind', async () => {
  await expect(writeDurably(join(folder, 'none', 'b.json'), Buffer.from('x'))).rejects.toThrow(FileError);
  const taken = join(folder, 'taken');
  await mkdir(join(taken, 'inside'), { recursive: true });
  await expect(writeDurably(taken, Buffer.from('x'))).rejects.toThrow(taken);
  expect(await readdir(folder)).not.toContain('taken.part');
});

test('a folder that does not exist cannot be flushed', async () => {
  await expect(flushFolder(join(folder, 'none'))).rejects.toThrow(FileError);
});

test('a file gets its name once, also where there are no hard links, and what has it stays', async () => {
  const none = () => Promise.reject(Object.assign(new Error('no links here'), { code: 'EPERM' }));
  const whole = join(folder, 'whole');
  await writeFile(whole, 'whole');
  for (const [name, ...how] of [['linked'], ['copied', none]] as const) {
    await nameOnce(whole, join(folder, name), ...how);
    expect(await readFile(join(folder, name), 'utf8')).toBe('whole');
    await rm(join(folder, name));
    await writeFile(join(folder, name), 'another');
    await expect(nameOnce(whole, join(folder, name), ...how)).rejects.toThrow('EEXIST');
    expect(await readFile(join(folder, name), 'utf8')).toBe('another');
  }
});
