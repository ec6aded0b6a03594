import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { OutputLockedError } from './errors.js';
import { LOCK_FILE, lockFolder } from './lock.js';

let folder: string;
let lock: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-'));
  lock = join(folder, LOCK_FILE);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a folder is locked once, until it is given back', () => {
  const unlock = lockFolder(folder);
  expect(() => lockFolder(folder)).toThrow(OutputLockedError);
  expect(() => lockFolder(folder)).toThrow(`process ${process.pid} on ${hostname()}`);
  unlock();
  expect(existsSync(lock)).toBe(false);
  lockFolder(folder)();
});

test('the lock of a process that has died is taken over', () => {
  const { pid } = spawnSync('true');
  writeFileSync(lock, JSON.stringify({ pid, host: hostname(), started: '1' }));
  const unlock = lockFolder(folder);
  expect(JSON.parse(readFileSync(lock, 'utf8')).pid).toBe(process.pid);
  unlock();
});

test('a process number that has been given to another process since does not hold the lock', () => {
  writeFileSync(lock, JSON.stringify({ pid: process.pid, host: hostname(), started: 'long ago' }));
  lockFolder(folder)();
});

test('a lock of another machine, or one that cannot be read, is left alone', () => {
  writeFileSync(lock, JSON.stringify({ pid: 1, host: 'elsewhere', started: null }));
  expect(() => lockFolder(folder)).toThrow('process 1 on elsewhere');
  writeFileSync(lock, '');
  expect(() => lockFolder(folder)).toThrow(`remove ${lock}`);
});
