import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { OutputLockedError } from '../errors.js';
import { LOCK_FILE, lockFolder, lockFolderPatiently, removeDeadLock } from './lock.js';

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
  const giveBack = lockFolder(folder);
  expect(JSON.parse(readFileSync(lock, 'utf8')).started).not.toBe('long ago');
  giveBack();
});

test('a lock of another machine, or one that cannot be read, is left alone', () => {
  writeFileSync(lock, JSON.stringify({ pid: 1, host: 'elsewhere', started: null }));
  expect(() => lockFolder(folder)).toThrow('process 1 on elsewhere');
  writeFileSync(lock, '');
  expect(() => lockFolder(folder)).toThrow(`remove ${lock}`);
});

function silentFor(seconds: number): void {
  const time = Date.now() / 1000 - seconds;
  utimesSync(lock, time, time);
}

test('a lock of another machine that was silent for two minutes is taken over, and so is one that was never written', () => {
  for (const text of [JSON.stringify({ pid: 1, host: 'elsewhere', started: null }), '']) {
    writeFileSync(lock, text);
    silentFor(100);
    expect(() => lockFolder(folder)).toThrow(OutputLockedError);
    silentFor(130);
    lockFolder(folder)();
    expect(readdirSync(folder)).toEqual([]);
  }
});

test('the lock of another machine is watched: one that is written again holds, one that falls silent does not', async () => {
  const text = JSON.stringify({ pid: 1, host: 'elsewhere', started: null });
  writeFileSync(lock, text);
  const beat = setTimeout(() => writeFileSync(lock, text), 300);
  await expect(lockFolderPatiently(folder, LOCK_FILE)).rejects.toThrow('process 1 on elsewhere');
  clearTimeout(beat);
  silentFor(119.5);
  (await lockFolderPatiently(folder, LOCK_FILE))();
  writeFileSync(lock, text);
  const stopped = lockFolderPatiently(folder, LOCK_FILE, AbortSignal.timeout(100));
  await expect(stopped).rejects.toMatchObject({ name: 'AbortError' });
});

test('giving a lock back leaves the one of somebody who has taken it over meanwhile', () => {
  const unlock = lockFolder(folder);
  const other = JSON.stringify({ pid: process.ppid, host: 'elsewhere', started: null });
  writeFileSync(lock, other);
  unlock();
  expect(removeDeadLock(lock)?.text).toBe(other);
});

test('asking who holds a lock takes away what a dead process left', () => {
  expect(removeDeadLock(lock)).toBeNull();
  writeFileSync(lock, JSON.stringify({ pid: spawnSync('true').pid, host: hostname(), started: '1' }));
  expect(removeDeadLock(lock)).toBeNull();
  expect(readdirSync(folder)).toEqual([]);
});
