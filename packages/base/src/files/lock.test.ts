import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type HeldLock, holderOf, isHeldBy, Lock, SILENT_MS, tryLock, underLock } from './lock.js';
import { newToken } from './process-identity.js';

let folder: string;
let path: string;
let child: ChildProcess | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-'));
  path = join(folder, 'pack.lock');
});
afterEach(() => {
  child?.kill('SIGKILL');
  child = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const lib = resolve('packages/base/lib/index.js');
const HOLDS = `
  import { tryLock } from ${JSON.stringify(lib)};
  const lock = tryLock(process.argv[1]);
  console.log('held');
  setInterval(() => lock, 1000);`;

/** Starts a process that takes the lock and keeps it. */
async function holder(...wrap: readonly string[]): Promise<ChildProcess> {
  const [command, ...words] = [...wrap, process.execPath, '--input-type=module', '-e', HOLDS, path];
  child = spawn(command!, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => child!.stdout!.once('data', resolve));
  return child;
}

/** The token of a process with other properties than this one. */
function tokenWith(change: { readonly pid?: number; readonly started?: string; readonly place?: string }): string {
  const [pid, started, place, random] = newToken().split('-');
  return [change.pid ?? pid, change.started ?? started, change.place ?? place, random].join('-');
}

function writeLock(token: string, host = hostname()): void {
  writeFileSync(path, JSON.stringify({ pid: Number(token.split('-')[0]), host, token }));
}

const ELSEWHERE = { place: '00000000' };

function silentFor(ms: number): void {
  const seconds = (Date.now() - ms) / 1000;
  utimesSync(path, seconds, seconds);
}

function take(): Lock {
  const lock = tryLock(path);
  expect(lock).toBeInstanceOf(Lock);
  return lock as Lock;
}

const held = () => tryLock(path) as HeldLock;

test('a lock can be taken once until it is released', () => {
  const lock = take();
  expect(held()).toMatchObject({ state: 'running', holder: { pid: process.pid, host: hostname() } });
  expect(isHeldBy(path, lock.token)).toBe(true);
  lock.release();
  expect(readdirSync(folder)).toEqual([]);
  take().release();
});

test('a lock is taken over if its process has ended, also if another process has the same process id now', () => {
  for (const token of [tokenWith({ pid: spawnSync('true').pid }), tokenWith({ started: '1' })]) {
    writeLock(token);
    const lock = take();
    expect(readFileSync(path, 'utf8')).toContain(lock.token);
    lock.release();
  }
});

test.runIf(process.platform === 'linux')('a zombie process holds no lock', async () => {
  // The shell does not wait for the process that it has started.
  child = spawn(
    'sh',
    ['-c', '"$@" & exec sleep 1000', 'sh', process.execPath, '--input-type=module', '-e', HOLDS, path],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  await new Promise((resolve) => child!.stdout!.once('data', resolve));
  const { pid } = held().holder!;
  process.kill(pid, 'SIGKILL');
  while (!/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) await new Promise(setImmediate);
  take().release();
});

test.runIf(process.platform === 'linux')(
  'a suspended process holds its lock until it has not renewed it for a long time',
  async () => {
    const { pid } = await holder();
    process.kill(pid!, 'SIGSTOP');
    while (held().state !== 'stopped') await new Promise(setImmediate);
    silentFor(SILENT_MS - 10_000);
    expect(held().state).toBe('stopped');
    silentFor(SILENT_MS + 10_000);
    take().release();
  },
);

test('a running process on this machine holds its lock, however long it has not renewed it', () => {
  const lock = take();
  silentFor(10 * SILENT_MS);
  expect(held().state).toBe('running');
  lock.release();
});

const canUnshare = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;

test.runIf(canUnshare)(
  'a process in another pid namespace of this machine holds its lock as long as it renews it',
  async () => {
    await holder('unshare', '--pid', '--fork', '--mount-proc', '--kill-child');
    expect(held()).toMatchObject({ state: 'unknown', holder: { host: hostname() } });
    silentFor(SILENT_MS + 10_000);
    take().release();
  },
);

test.runIf(canUnshare)(
  'a process in a child pid namespace treats holders from other namespaces as unknown',
  async () => {
    const ask = `
    import { newToken, stateOf } from ${JSON.stringify(lib)};
    console.log(stateOf(newToken()));`;
    const command = ['--pid', '--fork', process.execPath, '--input-type=module', '-e', ask];
    expect(execFileSync('unshare', command, { encoding: 'utf8' }).trim()).toBe('unknown');
  },
);

test('a lock of another machine, or without a holder, is kept until it has not been renewed for a long time', () => {
  const texts = [
    JSON.stringify({ pid: 1, host: 'elsewhere', token: tokenWith(ELSEWHERE) }),
    // A lock of an earlier version.
    JSON.stringify({ pid: process.pid, host: hostname(), started: '1', token: '1b4e28ba-2fa1-11d2-883f-0016d3cca427' }),
    '',
  ];
  for (const text of texts) {
    writeFileSync(path, text);
    silentFor(SILENT_MS - 10_000);
    expect(held()).toMatchObject({ state: 'unknown', text });
    silentFor(SILENT_MS + 10_000);
    take().release();
    expect(readdirSync(folder)).toEqual([]);
  }
});

test('a dangling link, which earlier versions used to lock caches, is taken over when it is old', () => {
  symlinkSync('12-345-0123456789ab', path);
  expect(held()).toMatchObject({ state: 'unknown', holder: null });
  execFileSync('touch', ['-h', '-d', '10 minutes ago', path]);
  take().release();
});

test('releasing a lock keeps the lock of a process that has taken it over', () => {
  const lock = take();
  writeLock(tokenWith(ELSEWHERE), 'elsewhere');
  expect(isHeldBy(path, lock.token)).toBe(false);
  lock.release();
  expect(holderOf(path)?.holder?.host).toBe('elsewhere');
});

test('looking up the holder of a lock removes the lock of a dead process', () => {
  expect(holderOf(path)).toBeNull();
  writeLock(tokenWith({ pid: spawnSync('true').pid }));
  expect(holderOf(path)).toBeNull();
  expect(existsSync(path)).toBe(false);
});

test('short work waits for the lock while timers run, and eventually gives up', async () => {
  const lock = take();
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  const order: string[] = [];
  const waiting = underLock(path, 10_000, () => order.push('worked'));
  while (ticks < 5) await new Promise(setImmediate);
  order.push('released');
  lock.release();
  expect(await waiting).toEqual({ value: 2 });
  expect(order).toEqual(['released', 'worked']);
  clearInterval(timer);
  const again = take();
  expect(await underLock(path, 20, () => 1)).toBeUndefined();
  again.release();
});
