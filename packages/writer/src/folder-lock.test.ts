import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Lock, newToken, tryLock } from '@shardtool/base';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { OutputLockedError } from './errors.js';
import { checkHeld, LOCK_FILE, lockFolder, lockFolderPatiently } from './folder-lock.js';
import { commitOnce } from './output/commit-once.js';

let folder: string;
let path: string;
const said: string[] = [];
const hear = ({ message }: Error) => said.push(message);
process.on('warning', hear);
afterAll(() => process.off('warning', hear));

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-'));
  path = join(folder, LOCK_FILE);
  said.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ELSEWHERE = JSON.stringify({
  ...{ pid: 7, host: 'elsewhere' },
  token: newToken().replace(/^(\d+)-(\d+)-[^-]+/, '$1-$2-00000000'),
});

function silentFor(seconds: number): void {
  const time = Date.now() / 1000 - seconds;
  utimesSync(path, time, time);
}

test('a folder that another pack is writing to is rejected, with the process and the lock file in the message', () => {
  const lock = lockFolder(folder);
  expect(() => lockFolder(folder)).toThrow(OutputLockedError);
  expect(() => lockFolder(folder)).toThrow(`process ${process.pid} on ${hostname()}`);
  expect(() => lockFolder(folder)).toThrow(`remove ${path}`);
  lock.release();
  lockFolder(folder).release();
});

test('a lock of another machine is watched, which is reported immediately, and still holds if it is renewed', async () => {
  writeFileSync(path, ELSEWHERE);
  silentFor(60);
  const refused = expect(lockFolderPatiently(folder, LOCK_FILE)).rejects.toThrow('process 7 on elsewhere');
  await new Promise(setImmediate);
  expect(said).toHaveLength(1);
  expect(said[0]).toContain('Waiting for process 7 on elsewhere');
  writeFileSync(path, ELSEWHERE);
  await refused;
});

test('a lock of another machine that is not renewed is taken over', async () => {
  writeFileSync(path, ELSEWHERE);
  silentFor(119.5);
  const lock: Lock = await lockFolderPatiently(folder, LOCK_FILE);
  lock.release();
  writeFileSync(path, ELSEWHERE);
  const stopped = lockFolderPatiently(folder, LOCK_FILE, AbortSignal.timeout(100));
  await expect(stopped).rejects.toMatchObject({ name: 'AbortError' });
});

test('a holder whose lock was taken over gets an error before it commits anything', () => {
  const lock = lockFolder(folder);
  checkHeld(lock);
  writeFileSync(path, ELSEWHERE);
  expect(() => checkHeld(lock)).toThrow(OutputLockedError);
  lock.release();
});

test('a part that waits for another part to commit reports that once', async () => {
  const commit = tryLock(join(folder, 'pack.commit.lock'));
  const waiting = commitOnce(folder, async () => 'committed', undefined);
  await new Promise(setImmediate);
  expect(said).toHaveLength(1);
  expect(said[0]).toContain(`Waiting for process ${process.pid} on ${hostname()}`);
  (commit as Lock).release();
  expect(await waiting).toBe('committed');
  expect(said).toHaveLength(1);
});
