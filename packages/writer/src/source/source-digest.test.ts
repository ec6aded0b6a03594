import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { digestOfSource } from './source-digest.js';
import { type SourceFiles, sourceFilesOf } from './source-files.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'source-digest-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const IN_MEMORY = 2 ** 20;
const ON_DISK = 1;
const PATHS = ['a/1.jpg', 'a/2.jpg'];

function filesOf(paths: readonly string[], bytes: number, mtimeMs: number, memoryBytes = IN_MEMORY): SourceFiles {
  const files = sourceFilesOf(paths, { memoryBytes, folder: join(folder, 'out') });
  files.fill(0, files.count, (path) => ({ bytes: path === paths[0] ? bytes : 7, mtimeMs }));
  return files;
}

test('the same files and classes have the same digest, and another path, size, time, folder or class gives another digest', () => {
  const digest = digestOfSource('/photos/', filesOf(PATHS, 5, 1), null);
  expect(digestOfSource('/photos/', filesOf(PATHS, 5, 1), null)).toBe(digest);
  expect(digestOfSource('/photos/', filesOf(PATHS, 5, 1, ON_DISK), null)).toBe(digest);
  const others = [
    digestOfSource('/photos/', filesOf(['a/1.jpg', 'a/3.jpg'], 5, 1), null),
    digestOfSource('/photos/', filesOf(['a/1.jpg'], 5, 1), null),
    digestOfSource('/photos/', filesOf(PATHS, 7, 1), null),
    digestOfSource('/photos/', filesOf(PATHS, 5, 1.5), null),
    digestOfSource('/other/', filesOf(PATHS, 5, 1), null),
    digestOfSource('/photos/', filesOf(PATHS, 5, 1), ['a']),
  ];
  expect(new Set([digest, ...others]).size).toBe(7);
});
