import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sortByCodePoint } from '@shardtool/base';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SourceFiles, sourceFilesOf } from './source-files.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'source-files-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Creates files with this memory limit; the tests are the same for memory and disk. */
function filesOf(paths: readonly string[], memoryBytes: number): SourceFiles {
  return sourceFilesOf(sortByCodePoint([...paths]), { memoryBytes, folder: join(folder, 'state') });
}

const NOTHING = 1;
const ALL = 2 ** 28;

test('files are read back unchanged, in any order, from memory and from disk', () => {
  const path = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => !text.includes('\0'));
  fc.assert(
    fc.property(
      fc.uniqueArray(path, { minLength: 1, maxLength: 40 }),
      fc.array(fc.nat(39), { maxLength: 60 }),
      fc.constantFrom(NOTHING, ALL),
      (paths, looks, memoryBytes) => {
        const files = filesOf(paths, memoryBytes);
        const sorted = sortByCodePoint([...paths]);
        expect(files.count).toBe(sorted.length);
        files.fill(0, files.count, (text) => ({ bytes: sorted.indexOf(text), mtimeMs: text.length + 0.25 }));
        const reader = files.reader();
        for (const look of looks) {
          const file = look % sorted.length;
          expect(reader.path(file)).toBe(sorted[file]);
          const length = Buffer.byteLength(sorted[file]!);
          const copy = Buffer.alloc(length + 2, '-');
          expect(reader.pathBytes(file)).toBe(length);
          reader.copyPath(file, copy, 1);
          expect(copy.toString()).toBe(`-${sorted[file]}-`);
          expect(reader.bytes(file)).toBe(file);
          expect(reader.mtimeMs(file)).toBe(sorted[file]!.length + 0.25);
          expect(reader.find(sorted[file]!)).toBe(file);
        }
        expect(reader.find(`${sorted.at(-1)}!`)).toBe(-1);
        const wanted = [
          ...looks.map((look) => sorted[look % sorted.length]!),
          '',
          `${sorted[0]}!`,
          `${sorted.at(-1)}!`,
        ];
        for (const mostHashed of [undefined, 0]) {
          const expected = wanted.map((text) => sorted.indexOf(text));
          expect([...reader.findAll(wanted, mostHashed)]).toEqual(expected);
          expect([...files.reader().findAll(wanted, mostHashed)]).toEqual(expected);
        }
        files.close();
      },
    ),
  );
});

test('files that are moved to disk while they are added are all read back, in one pass and one by one', () => {
  const paths = Array.from({ length: 60_000 }, (_, i) => `${String(i).padStart(6, '0')}${'x'.repeat(i % 70)}`);
  const files = filesOf(paths, 2 ** 20);
  for (const reader of [files.reader(), files.reader()]) {
    expect(paths.findIndex((path, file) => reader.path(file) !== path)).toBe(-1);
    expect([59_999, 3, 31_000, 31_001, 0].map((file) => reader.path(file))).toEqual(
      [59_999, 3, 31_000, 31_001, 0].map((file) => paths[file]),
    );
  }
  files.close();
});

test('values that another thread fills in are visible to a reader created afterwards', () => {
  for (const memoryBytes of [NOTHING, ALL]) {
    const files = filesOf(['a.jpg', 'b.jpg', 'c.jpg'], memoryBytes);
    new SourceFiles(files.share()).fill(1, 3, (path) => ({ bytes: path === 'b.jpg' ? 7 : 9, mtimeMs: 1 }));
    const reader = files.reader();
    expect([0, 1, 2].map((file) => reader.bytes(file))).toEqual([0, 7, 9]);
    files.close();
  }
});

test('on the disk the files have no name, so that a killed process leaves nothing on the disk', () => {
  const files = filesOf(['a.jpg'], NOTHING);
  expect(files.share().spool).toHaveProperty('fd');
  expect(readdirSync(folder)).toEqual([]);
  files.close();
});

test('a path longer than the write and read buffers is read back like any other', () => {
  const long = 'y'.repeat(3 * 2 ** 20);
  for (const memoryBytes of [NOTHING, ALL]) {
    const files = filesOf(['x', long, 'z'], memoryBytes);
    const reader = files.reader();
    expect([0, 1, 2].map((file) => reader.path(file).length)).toEqual([1, long.length, 1]);
    expect(reader.path(2)).toBe('z');
    files.close();
  }
});
