import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BadFile, readSourceFile } from './source-file.js';

let root: string;
let file: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'source-'));
  file = join(root, 'a.jpg');
  writeFileSync(file, 'twelve bytes');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

test('a file that still has its measured size is read completely', () => {
  const target = new Uint8Array(12);
  readSourceFile(file, target);
  expect(Buffer.from(target).toString()).toBe('twelve bytes');
});

test('a file that grew or shrank since it was measured is bad', () => {
  expect(() => readSourceFile(file, new Uint8Array(11))).toThrow('has changed since the pack began');
  expect(() => readSourceFile(file, new Uint8Array(13))).toThrow(BadFile);
  expect(() => readSourceFile(file, new Uint8Array(0))).toThrow(BadFile);
});

test('a file is read completely into the middle of a buffer, and one that grew or shrank is bad', () => {
  const buffer = new Uint8Array(20).fill(0x2e);
  readSourceFile(file, buffer.subarray(4, 16));
  expect(Buffer.from(buffer).toString()).toBe('....twelve bytes....');
  for (const bytes of [0, 11, 13]) {
    expect(() => readSourceFile(file, buffer.subarray(4, 4 + bytes)), String(bytes)).toThrow(BadFile);
  }
});

test('a file that was deleted, or replaced by a folder or a pipe, is bad and is not waited for', () => {
  expect(() => readSourceFile(join(root, 'gone.jpg'), new Uint8Array(1))).toThrow(
    'gone.jpg cannot be read: no such file or folder',
  );
  mkdirSync(join(root, 'folder.jpg'));
  expect(() => readSourceFile(join(root, 'folder.jpg'), new Uint8Array(1))).toThrow(BadFile);
  execFileSync('sh', ['-c', 'mkfifo "$0"', join(root, 'pipe.jpg')]);
  expect(() => readSourceFile(join(root, 'pipe.jpg'), new Uint8Array(1))).toThrow(BadFile);
});
