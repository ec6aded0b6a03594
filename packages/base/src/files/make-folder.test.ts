import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeFolder } from './make-folder.js';

const root = mkdtempSync(path.join(tmpdir(), 'shardtool-make-folder-'));
afterAll(() => rmSync(root, { recursive: true }));

test('a folder is made with those above it, once', () => {
  expect(makeFolder(path.join(root, 'a/b/c'))).toBe(true);
  expect(makeFolder(path.join(root, 'a/b/c'))).toBe(false);
  expect(existsSync(path.join(root, 'a/b/c'))).toBe(true);
});

test('a file in the way stays, and is an error', () => {
  const file = path.join(root, 'file');
  writeFileSync(file, 'mine');
  expect(() => makeFolder(file)).toThrow('EEXIST');
  expect(() => makeFolder(path.join(file, 'below'))).toThrow('ENOTDIR');
  expect(readFileSync(file, 'utf8')).toBe('mine');
});

test.runIf(existsSync('/proc/self'))(
  'where the system lets nobody make a folder, that is an error and no endless loop',
  () => {
    expect(() => makeFolder('/proc/shardtool')).toThrow('ENOENT');
    expect(() => makeFolder('/proc/shardtool/below')).toThrow('ENOENT');
  },
);
