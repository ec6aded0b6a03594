import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type Lock, newToken, temporaryName, tryLock } from '@shardtool/base';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { randomOf } from '../../../../test/random.js';
import { TIMES } from '../../../../test/repetitions.js';
import { CacheFolder } from './cache-folder.js';

const base = fs.mkdtempSync(path.join(os.tmpdir(), 'shardtool-cache-'));
afterAll(() => fs.rmSync(base, { recursive: true }));
const emptyFolder = () => fs.mkdtempSync(path.join(base, 'f'));
const lib = path.resolve('packages/storage/lib/index.js');
const random = randomOf('kills of processes that fill a cache');
/** The token of a process that does not exist: no process has this id. */
const gone = newToken().replace(/^\d+/, String(2 ** 30));
/** The content that a process with this token writes into a claim of 14 bytes, or a lock. */
const textOf = (token: string, bytes = 14) => JSON.stringify({ pid: 7, host: 'here', token, bytes });
const used = (folder: string) => Number(fs.readFileSync(path.join(folder, 'used'), 'utf8'));
const pathOf = (cache: CacheFolder, name: string) => path.join(cache.folder, 'pieces', name);

/** Starts a program that can use a cache, and prints a line when it is ready. */
async function start(folder: string, maxBytes: number, program: string): Promise<ChildProcess> {
  const text = `
    import { CacheFolder } from ${JSON.stringify(lib)};
    const cache = await CacheFolder.open(${JSON.stringify(folder)}, ${maxBytes});
    ${program}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['pipe', 'pipe', 'inherit'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child;
}

const ended = (child: ChildProcess) => new Promise((resolve) => child.once('exit', resolve));

function bytesIn(folder: string): number {
  const pieces = path.join(folder, 'pieces');
  return fs
    .readdirSync(pieces)
    .map((name) => fs.lstatSync(path.join(pieces, name)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0);
}

test('a folder that contains other files is not accepted as a cache, and an empty folder is an empty cache', async () => {
  const folder = emptyFolder();
  fs.writeFileSync(path.join(folder, 'thesis.tex'), 'x');
  await expect(CacheFolder.open(folder, 1000)).rejects.toThrow(/is not a cache of shardtool/);
  await expect(CacheFolder.clear(folder)).rejects.toThrow(/is not a cache of shardtool/);
  const empty = emptyFolder();
  expect(CacheFolder.contents(empty)).toEqual({ pieces: 0, bytes: 0 });
  expect(await CacheFolder.clear(empty)).toEqual({ pieces: 0, bytes: 0 });
  expect(fs.readdirSync(empty)).toEqual([]);
});

test.runIf(process.platform === 'linux')(
  'a cache folder that cannot be created throws an error and does not hang',
  async () => {
    // Node's own recursive mkdirSync never returns there.
    await expect(CacheFolder.open('/proc/x/cache', 1000)).rejects.toThrow(/^\/proc\/x\/cache .*\.$/);
  },
);

test('the piece that will be needed furthest in the future is evicted first, and never for one that is needed even later', async () => {
  const cache = await CacheFolder.open(path.join(emptyFolder(), 'cache'), 42);
  for (const [name, key] of [
    ['a', 100],
    ['b', 300],
    ['c', 200],
  ] as const) {
    expect(await cache.write((await cache.claim(name, 10, key))!, new Uint8Array(10), key)).toBe(true);
  }
  expect(await cache.claim('d', 10, 400)).toBeNull();
  const claim = (await cache.claim('d', 10, 250))!;
  expect([cache.has('a'), cache.has('b'), cache.has('c')]).toEqual([true, false, true]);
  expect(cache.isBeingWritten('d')).toBe(true);
  await cache.giveBack(claim);
  cache.use('a', 900);
  expect(await cache.claim('e', 24, 800)).not.toBeNull();
  expect([cache.has('a'), cache.has('c')]).toEqual([false, true]);
});

test('any part of a piece is read back unchanged', async () => {
  const cache = await CacheFolder.open(path.join(emptyFolder(), 'cache'), 1_000_000);
  const content = Uint8Array.from({ length: 200_000 }, (_, at) => (at * 31) % 251);
  await cache.write((await cache.claim('a', content.length, 1))!, content, 1);
  await fc.assert(
    fc.asyncProperty(fc.nat(content.length), fc.nat(content.length), async (one, other) => {
      const [from, to] = [Math.min(one, other), Math.max(one, other)];
      const target = new Uint8Array(new SharedArrayBuffer(to - from));
      expect(await cache.read('a', content.length, from, target)).toBe(true);
      expect(Buffer.from(target).equals(content.subarray(from, to))).toBe(true);
    }),
  );
  expect(await cache.read('b', content.length, 0, new Uint8Array(10))).toBe(false);
});

test('a piece with a flipped bit, or a truncated piece, is dropped when the damaged part is read', async () => {
  const cache = await CacheFolder.open(path.join(emptyFolder(), 'cache'), 1_000_000);
  const content = Uint8Array.from({ length: 200_000 }, (_, at) => (at * 31) % 251);
  const file = pathOf(cache, 'a');
  const fill = async () => {
    await cache.write((await cache.claim('a', content.length, 1))!, content, 1);
    return fs.readFileSync(file);
  };
  for (const at of [150_000, content.length + 8]) {
    const bytes = await fill();
    bytes[at]! ^= 1;
    fs.writeFileSync(file, bytes);
    expect(await cache.read('a', content.length, 0, new Uint8Array(100_000))).toBe(true);
    expect(await cache.read('a', content.length, 140_000, new Uint8Array(100))).toBe(false);
    expect(cache.has('a')).toBe(false);
  }
  for (const length of [0, 100_000, content.length, content.length + 3]) {
    await fill();
    fs.truncateSync(file, length);
    expect(await cache.read('a', content.length, 0, new Uint8Array(10))).toBe(false);
    expect(cache.has('a')).toBe(false);
  }
  // As after a power cut, when the file has its length and no content.
  await fill();
  fs.writeFileSync(file, new Uint8Array(fs.statSync(file).size));
  expect(await cache.read('a', content.length, 0, new Uint8Array(10))).toBe(false);
});

test('a process that is killed while it writes leaves no piece that looks complete and uses no space', {
  timeout: 60_000 * TIMES,
}, async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const kills = 2 * TIMES;
  const program = `
    console.log('ready');
    for (let i = process.pid; ; i++) {
      const claim = await cache.claim('p' + (i % 40), 20_000, i % 977);
      if (claim !== null) await cache.write(claim, new Uint8Array(20_000).fill(1), i % 977);
    }`;
  for (let kill = 0; kill < kills; kill++) {
    const two = await Promise.all([0, 1].map(() => start(folder, 400_000, program)));
    await new Promise((resolve) => setTimeout(resolve, 20 + random() * 60));
    await Promise.all(
      two.map((child) => {
        child.kill('SIGKILL');
        return ended(child);
      }),
    );
    expect(bytesIn(folder)).toBeLessThanOrEqual(400_000);
    const cache = await CacheFolder.open(folder, 400_000);
    for (const name of fs.readdirSync(path.join(folder, 'pieces'))) {
      expect(name).toMatch(/^p\d+$/);
      const content = Buffer.alloc(20_000);
      expect(await cache.read(name, 20_000, 0, content)).toBe(true);
      expect(content).toEqual(Buffer.alloc(20_000, 1));
    }
    expect(fs.readdirSync(folder).sort()).toEqual(['pieces', 'shardtool-cache', 'used']);
    expect(used(folder)).toBe(bytesIn(folder));
  }
});

test('a claim left by a process that was killed after its piece was written does not change the used size', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const cache = await CacheFolder.open(folder, 42);
  for (const name of ['a', 'b', 'c']) await cache.write((await cache.claim(name, 10, 100))!, new Uint8Array(10), 100);
  cache.use('a', 900);
  fs.writeFileSync(`${pathOf(cache, 'a')}.claim`, textOf(gone));
  await cache.giveBack((await cache.claim('d', 10, 50))!);
  expect(cache.has('a')).toBe(false);
  expect(await cache.claim('a', 10, 900)).not.toBeNull();
  expect(used(folder)).toBe(42);
});

test('a piece is published only while no other process counts the used size', { timeout: 60_000 }, async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const cache = await CacheFolder.open(folder, 100);
  const child = await start(
    folder,
    100,
    `
    const claim = await cache.claim('a', 10, 5);
    console.log('claimed');
    process.stdin.once('data', async () => {
      await cache.write(claim, new Uint8Array(10), 5);
      process.exit();
    });`,
  );
  const end = ended(child);
  const lock = tryLock(path.join(folder, 'lock')) as Lock;
  child.stdin!.write('go');
  const isWritten = () => fs.readdirSync(path.join(folder, 'pieces')).some((name) => name.endsWith('.part'));
  while (!isWritten()) await new Promise((resolve) => setTimeout(resolve, 5));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect([cache.has('a'), cache.isBeingWritten('a')]).toEqual([false, true]);
  lock.release();
  expect(await end).toBe(0);
  expect([cache.has('a'), cache.isBeingWritten('a')]).toEqual([true, false]);
});

test('a claim of an earlier process with a reused process id does not block others', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const cache = await CacheFolder.open(folder, 100);
  const earlier = newToken().replace(/^(\d+)-\d+/, '$1-1');
  fs.writeFileSync(`${pathOf(cache, 'a')}.claim`, textOf(earlier));
  fs.writeFileSync(temporaryName(pathOf(cache, 'a'), earlier), 'half');
  expect(cache.isBeingWritten('a')).toBe(false);
  expect(await cache.claim('a', 10, 5)).not.toBeNull();
  expect(fs.readdirSync(path.join(folder, 'pieces'))).toEqual(['a.claim']);
  // Neither does a lock.
  fs.writeFileSync(path.join(folder, 'lock'), textOf(earlier));
  expect(await cache.claim('b', 10, 5)).not.toBeNull();
});

test('opening the folder removes what dead processes left, and keeps what other processes write', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const first = await CacheFolder.open(folder, 100);
  await first.claim('mine', 20, 5);
  fs.writeFileSync(`${pathOf(first, 'theirs')}.claim`, textOf(gone));
  fs.writeFileSync(temporaryName(pathOf(first, 'theirs'), gone), 'half');
  fs.writeFileSync(temporaryName(pathOf(first, 'lost'), gone), 'half');
  await CacheFolder.open(folder, 100);
  expect(fs.readdirSync(path.join(folder, 'pieces'))).toEqual(['mine.claim']);
  expect(used(folder)).toBe(24);
});

test('pieces of an earlier version, which had no checksums, are removed, and a lock of that version does not block forever', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  fs.mkdirSync(path.join(folder, 'pieces'), { recursive: true });
  fs.writeFileSync(path.join(folder, 'shardtool-cache'), 'Pieces of datasets that were fetched.\n');
  fs.writeFileSync(path.join(folder, 'pieces', 'd41d8cd98f00b204.0.s8388608.0'), 'earlier');
  fs.symlinkSync('1-2-0123456789ab', path.join(folder, 'lock'));
  execFileSync('touch', ['-h', '-d', '1 hour ago', path.join(folder, 'lock')]);
  await CacheFolder.open(folder, 100);
  expect(CacheFolder.contents(folder)).toEqual({ pieces: 0, bytes: 0 });
  expect(used(folder)).toBe(0);
});

test.runIf(process.platform === 'linux')(
  'a suspended process that is writing a piece does not block others',
  async () => {
    const folder = path.join(emptyFolder(), 'cache');
    const child = await start(
      folder,
      1000,
      `await cache.claim('a', 10, 5); console.log('claimed'); setInterval(() => 0, 1000);`,
    );
    const cache = await CacheFolder.open(folder, 1000);
    const end = ended(child);
    try {
      expect(cache.isBeingWritten('a')).toBe(true);
      child.kill('SIGSTOP');
      expect(await cache.whenWritten('a')).toBe(false);
      expect(await cache.claim('a', 10, 5)).toBeNull();
      // A process that is only slow does not block twice, either.
      child.kill('SIGCONT');
      expect(await cache.whenWritten('a')).toBe(false);
      let isTicking = false;
      setImmediate(() => {
        isTicking = true;
      });
      expect(await cache.whenWritten('a')).toBe(false);
      expect(isTicking).toBe(false);
    } finally {
      child.kill('SIGKILL');
      await end;
    }
    expect(await cache.claim('a', 10, 5)).not.toBeNull();
  },
);

test.runIf(process.platform === 'linux')('a suspended process that holds the lock does not prevent reads', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const cache = await CacheFolder.open(folder, 1000);
  await cache.write((await cache.claim('a', 10, 5))!, new Uint8Array(10).fill(3), 5);
  const child = await start(
    folder,
    1000,
    `
    import { tryLock } from ${JSON.stringify(path.resolve('packages/base/lib/index.js'))};
    const lock = tryLock(${JSON.stringify(path.join(folder, 'lock'))});
    console.log('locked');
    setInterval(() => lock, 1000);`,
  );
  const end = ended(child);
  try {
    child.kill('SIGSTOP');
    let ticks = 0;
    const timer = setInterval(() => ticks++, 10);
    expect(await cache.claim('b', 10, 5)).toBeNull();
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(2);
    const late = await CacheFolder.open(folder, 1000);
    expect(await late.claim('b', 10, 5)).toBeNull();
    const content = new Uint8Array(10);
    expect(await late.read('a', 10, 0, content)).toBe(true);
    expect(content).toEqual(new Uint8Array(10).fill(3));
  } finally {
    child.kill('SIGKILL');
    await end;
  }
  const next = await CacheFolder.open(folder, 1000);
  expect(await next.claim('b', 10, 5)).not.toBeNull();
});

test('a process that was considered dead while it wrote publishes nothing and does not change the used size', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const [one, other] = [await CacheFolder.open(folder, 1000), await CacheFolder.open(folder, 1000)];
  const claim = (await one.claim('a', 10, 5))!;
  fs.writeFileSync(`${pathOf(one, 'a')}.claim`, textOf(gone));
  const theirs = (await other.claim('a', 10, 5))!;
  expect(await one.write(claim, new Uint8Array(10).fill(1), 5)).toBe(false);
  expect(one.has('a')).toBe(false);
  expect(await other.write(theirs, new Uint8Array(10).fill(2), 5)).toBe(true);
  expect(used(folder)).toBe(14);
  expect(fs.readdirSync(path.join(folder, 'pieces'))).toEqual(['a']);
});

/** Mounts a file system of 1 MiB in memory; null if that is not allowed. */
function smallDisk(): string | null {
  const folder = emptyFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', folder], { stdio: 'pipe' });
    return folder;
  } catch {
    console.error('No small file system can be mounted here, so what needs it is skipped.');
    return null;
  }
}

test('on a full disk nothing is kept and no partial file is left, until there is space again', async () => {
  const disk = smallDisk();
  if (disk === null) return expect(disk).toBeNull();
  try {
    const folder = path.join(disk, 'cache');
    const cache = await CacheFolder.open(folder, 100_000_000);
    expect(await cache.write((await cache.claim('a', 500_000, 5))!, new Uint8Array(500_000), 5)).toBe(true);
    expect(await cache.write((await cache.claim('b', 900_000, 5))!, new Uint8Array(900_000), 5)).toBe(false);
    expect(fs.readdirSync(path.join(folder, 'pieces'))).toEqual(['a']);
    expect(used(folder)).toBe(500_032);
    // For a while the cache does not try again.
    expect(await cache.claim('c', 10, 5)).toBeNull();
    // Not even the file with the used size can be written.
    fs.writeFileSync(path.join(disk, 'other'), new Uint8Array(400_000));
    expect(() => fs.writeFileSync(path.join(disk, 'rest'), new Uint8Array(1_000_000))).toThrow('ENOSPC');
    const next = await CacheFolder.open(folder, 100_000_000);
    expect(await next.claim('c', 10, 5)).toBeNull();
    expect(cache.has('a')).toBe(true);
    await cache.drop('a');
    for (const name of ['other', 'rest']) fs.rmSync(path.join(disk, name), { force: true });
    const later = await CacheFolder.open(folder, 100_000_000);
    expect(await later.write((await later.claim('d', 500_000, 5))!, new Uint8Array(500_000), 5)).toBe(true);
    expect(later.has('a')).toBe(false);
  } finally {
    execFileSync('umount', ['-l', disk]);
  }
});

test('in a folder that has become read-only, a claim of an unreachable process does not block others forever', async () => {
  const disk = smallDisk();
  if (disk === null) return expect(disk).toBeNull();
  try {
    const cache = await CacheFolder.open(path.join(disk, 'cache'), 1000);
    const elsewhere = newToken().replace(/[0-9a-f]{8}(-[0-9a-f]{8})$/, '00000000$1');
    fs.writeFileSync(`${pathOf(cache, 'a')}.claim`, textOf(elsewhere));
    execFileSync('mount', ['-o', 'remount,ro', disk]);
    expect(cache.isBeingWritten('a')).toBe(true);
    expect(await cache.whenWritten('a')).toBe(false);
    expect(await cache.claim('a', 10, 5)).toBeNull();
    await cache.drop('a');
  } finally {
    execFileSync('umount', ['-l', disk]);
  }
});

test('a claim for which the disk has no space leaves nothing that others would wait for', async () => {
  const disk = smallDisk();
  if (disk === null) return expect(disk).toBeNull();
  try {
    const cache = await CacheFolder.open(path.join(disk, 'cache'), 100_000);
    const rest = path.join(disk, 'rest');
    expect(() => fs.writeFileSync(rest, new Uint8Array(2_000_000))).toThrow('ENOSPC');
    // There is a page for the lock, but none for the claim.
    fs.truncateSync(rest, fs.statSync(rest).size - 4096);
    expect(await cache.claim('a', 10, 5)).toBeNull();
    expect(fs.readdirSync(path.join(cache.folder, 'pieces'))).toEqual([]);
    expect(used(cache.folder)).toBe(0);
  } finally {
    execFileSync('umount', ['-l', disk]);
  }
});
