import { closeSync, writeSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FileError, FileExistsError } from '../errors.js';
import { newToken } from './process-identity.js';
import { readFullySync } from './read-fully.js';
import {
  openWithoutName,
  parseTemporaryName,
  removeAbandoned,
  removeLeftWithoutName,
  temporaryName,
} from './temporary-files.js';
import { AtomicFile, flushFolder, nameOnce, writeAtomically } from './write-atomically.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'atomic-'));
});
afterAll(() => rm(folder, { recursive: true }));

test('a file is replaced as a whole, and its temporary file is removed', async () => {
  const path = join(folder, 'a.json');
  await writeFile(path, 'a longer text than the new one');
  await writeAtomically(path, Buffer.from('new'));
  await flushFolder(folder);
  expect(await readFile(path, 'utf8')).toBe('new');
  expect(await readdir(folder)).toEqual(['a.json']);
});

test('if a file cannot be written, the error names it and no temporary file is left', async () => {
  await expect(writeAtomically(join(folder, 'none', 'b.json'), Buffer.from('x'))).rejects.toThrow(FileError);
  const taken = join(folder, 'taken');
  await mkdir(join(taken, 'inside'), { recursive: true });
  await expect(writeAtomically(taken, Buffer.from('x'))).rejects.toThrow(taken);
  expect((await readdir(folder)).filter((name) => parseTemporaryName(name) !== null)).toEqual([]);
});

test('a folder that does not exist cannot be flushed', async () => {
  await expect(flushFolder(join(folder, 'none'))).rejects.toThrow(FileError);
});

test('a file gets its name only if the name is free, with and without hard links; an existing file is kept', async () => {
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

test('several concurrent writers of one file all succeed, and the file is that of one of them', async () => {
  const path = join(folder, 'shared');
  const texts = Array.from({ length: 20 }, (_, number) => `${number}`.repeat(10_000));
  await Promise.all(texts.map((text) => writeAtomically(path, text, { flush: false })));
  expect(texts).toContain(await readFile(path, 'utf8'));
  expect((await readdir(folder)).filter((name) => name.startsWith('shared'))).toEqual(['shared']);
});

test('a file that must not replace another one leaves the existing file unchanged', async () => {
  const path = join(folder, 'once');
  await writeAtomically(path, 'first', { ifAbsent: true });
  await expect(writeAtomically(path, 'second', { ifAbsent: true })).rejects.toThrow(FileExistsError);
  expect(await readFile(path, 'utf8')).toBe('first');
  expect((await readdir(folder)).filter((name) => name.startsWith('once'))).toEqual(['once']);
});

test('a temporary file that another process has replaced does not become the final file', async () => {
  const path = join(folder, 'swapped');
  const file = await AtomicFile.create(path);
  await file.handle.writeFile('mine');
  await writeFile(join(folder, 'other'), 'not mine');
  await rename(join(folder, 'other'), file.temporary);
  await expect(file.place()).rejects.toThrow('was replaced by another process');
  expect((await readdir(folder)).filter((name) => name.startsWith('swapped'))).toEqual([]);
});

test('files of killed processes are removed; files of other writers and of users are kept', async () => {
  const place = await mkdtemp(join(folder, 'left-'));
  const [pid, started, where, random] = newToken().split('-');
  const ofDead = temporaryName('a.parquet', `${2 ** 30}-${started}-${where}-${random}`);
  const [fresh, old] = ['b.parquet', 'c.parquet'].map((name) =>
    temporaryName(name, `${pid}-${started}-00000000-${random}`),
  );
  const kept = ['d.parquet', 'mine.part', 'x.1-2-3-4.part', fresh!, temporaryName('e.parquet')].sort();
  for (const name of [...kept, ofDead, old!]) await writeFile(join(place, name), 'half');
  const yesterday = Date.now() / 1000 - 86_400;
  await utimes(join(place, old!), yesterday, yesterday);
  removeAbandoned(place, (final) => final !== 'a.parquet');
  expect(await readdir(place)).toContain(ofDead);
  removeAbandoned(place);
  expect((await readdir(place)).sort()).toEqual(kept);
});

test('an unnamed file is not listed in its folder, and the names that killed processes left are removed', async () => {
  const place = await mkdtemp(join(folder, 'unnamed-'));
  const [, started, where, random] = newToken().split('-');
  await writeFile(join(place, temporaryName('spool', `${2 ** 30}-${started}-${where}-${random}`)), 'half');
  const others = [temporaryName('spool'), 'spool-mine'].sort();
  for (const name of others) await writeFile(join(place, name), 'kept');
  removeLeftWithoutName(place);
  const fd = openWithoutName(place);
  writeSync(fd, 'bytes');
  expect(readFullySync(fd, Buffer.alloc(5), 0)).toBe(5);
  closeSync(fd);
  expect((await readdir(place)).sort()).toEqual(others);
});
