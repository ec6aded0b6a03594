import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeFolder } from './make-folder.js';

const root = mkdtempSync(path.join(tmpdir(), 'shardtool-make-folder-'));
afterAll(() => rmSync(root, { recursive: true }));

test('a folder is created together with its parents, once', () => {
  expect(makeFolder(path.join(root, 'a/b/c'))).toBe(true);
  expect(makeFolder(path.join(root, 'a/b/c'))).toBe(false);
  expect(existsSync(path.join(root, 'a/b/c'))).toBe(true);
});

test('a file with the name of the folder is kept, and an error is thrown', () => {
  const file = path.join(root, 'file');
  writeFileSync(file, 'mine');
  expect(() => makeFolder(file)).toThrow('EEXIST');
  expect(() => makeFolder(path.join(file, 'below'))).toThrow('ENOTDIR');
  expect(readFileSync(file, 'utf8')).toBe('mine');
});

test.runIf(existsSync('/proc/self'))(
  'if the system does not allow a folder, an error is thrown, and there is no endless loop',
  () => {
    expect(() => makeFolder('/proc/shardtool')).toThrow('ENOENT');
    expect(() => makeFolder('/proc/shardtool/below')).toThrow('ENOENT');
  },
);
