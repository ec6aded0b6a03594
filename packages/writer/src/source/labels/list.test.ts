import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path, { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FileNameError, LabelsError, SourceError } from '../../errors.js';
import { readLines } from '../text-file.js';
import { listFiles, pathBelow } from './list.js';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'list-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function listed(list: string | string[]): Promise<string[]> {
  const files = await listFiles(root, list, { memoryBytes: 1e6, folder: root });
  const reader = files.reader();
  return Array.from({ length: files.count }, (_, i) => reader.path(i));
}

test('a list is sorted, and a repeated path is one file', async () => {
  expect(await listed(['b/2.jpg', './a/1.jpg', `${root}/b/2.jpg`])).toEqual(['a/1.jpg', 'b/2.jpg']);
});

test('a list in a text file has one path per line, with LF or CRLF; empty lines are ignored', async () => {
  writeFileSync(join(root, 'list.txt'), '\ufeffb.jpg\r\n\r\na b.jpg\n');
  expect(await listed(join(root, 'list.txt'))).toEqual(['a b.jpg', 'b.jpg']);
});

test('a path outside the source is an error with its line', async () => {
  writeFileSync(join(root, 'list.txt'), 'a.jpg\n../b.jpg\n');
  await expect(listed(join(root, 'list.txt'))).rejects.toThrow('list.txt:2: ../b.jpg is not below');
  await expect(listed(['/etc/passwd'])).rejects.toThrow(LabelsError);
});

test('a list that is missing, or is not UTF-8, is an error with its path', async () => {
  await expect(readLines(join(root, 'none.txt'))).rejects.toThrow(SourceError);
  writeFileSync(join(root, 'latin1.txt'), Buffer.from([0x61, 0xe9, 0x0a]));
  await expect(readLines(join(root, 'latin1.txt'))).rejects.toThrow(FileNameError);
});

test('a path with dots, empty names or a drive is normalized; other paths are not changed', () => {
  const name = fc.constantFrom('a', '.', '..', '...', '.b', 'c.jpg', '', 'é');
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), (names) => {
      const given = names.join('/');
      const expected = given === '' ? '' : path.relative('/photos', path.resolve('/photos', given));
      const isBelow = given === '' || (expected !== '' && expected !== '..' && !expected.startsWith('../'));
      if (isBelow) expect(pathBelow('/photos', given, 'here')).toBe(expected);
      else expect(() => pathBelow('/photos', given, 'here')).toThrow(LabelsError);
    }),
  );
});
