import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { TIMES } from '../../../../test/repetitions.js';
import { CacheFolder } from './cache-folder.js';
import { ownMark } from './process-mark.js';

const base = fs.mkdtempSync(path.join(os.tmpdir(), 'shardtool-cache-'));
afterAll(() => fs.rmSync(base, { recursive: true }));
const emptyFolder = () => fs.mkdtempSync(path.join(base, 'f'));
const lib = path.resolve('packages/storage/lib/index.js');
/** A mark of a process that is not there: no process has this number. */
const gone = ownMark().replace(/^\d+/, String(2 ** 30));

function bytesIn(folder: string): number {
  const pieces = path.join(folder, 'pieces');
  return fs
    .readdirSync(pieces)
    .map((name) => fs.lstatSync(path.join(pieces, name)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0);
}

test('a folder with other things in it is not taken for a cache', async () => {
  const folder = emptyFolder();
  fs.writeFileSync(path.join(folder, 'thesis.tex'), 'x');
  expect(() => new CacheFolder(folder, 1000)).toThrow(/is not a cache of shardtool/);
  expect(() => CacheFolder.clear(folder)).toThrow(/is not a cache of shardtool/);
});

test.runIf(process.platform === 'linux')(
  'a folder that cannot be made is a sentence, and no call that never ends',
  () => {
    // Node's own recursive mkdirSync goes round for ever there.
    expect(() => new CacheFolder('/proc/x/cache', 1000)).toThrow(/^\/proc\/x\/cache .*\.$/);
  },
);

test('what is needed last goes first, and nothing goes for what is needed later still', async () => {
  const cache = new CacheFolder(path.join(emptyFolder(), 'cache'), 30);
  for (const [name, key] of [
    ['a', 100],
    ['b', 300],
    ['c', 200],
  ] as const) {
    expect(await cache.write(cache.claim(name, 10, key)!, new Uint8Array(10), key)).toBe(true);
  }
  expect(cache.claim('d', 10, 400)).toBeNull();
  const claim = cache.claim('d', 10, 250)!;
  expect([cache.has('a'), cache.has('b'), cache.has('c')]).toEqual([true, false, true]);
  expect(cache.isBeingWritten('d')).toBe(true);
  cache.giveBack(claim);
  cache.use('a', 900);
  expect(cache.claim('e', 20, 800)).not.toBeNull();
  expect([cache.has('a'), cache.has('c')]).toEqual([false, true]);
});

test('a process that is killed while it writes leaves nothing that looks whole or takes room', {
  timeout: 60_000 * TIMES,
}, async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const kills = 2 * TIMES;
  const program = `
    import { CacheFolder } from ${JSON.stringify(lib)};
    const cache = new CacheFolder(${JSON.stringify(folder)}, 400_000);
    console.log('ready');
    for (let i = Math.floor(Math.random() * 1e6); ; i++) {
      const claim = cache.claim('p' + (i % 40), 20_000, i % 977);
      if (claim !== null) await cache.write(claim, new Uint8Array(20_000).fill(1), i % 977);
    }`;
  for (let kill = 0; kill < kills; kill++) {
    const two = [0, 1].map(() =>
      spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] }),
    );
    await Promise.all(two.map((child) => new Promise((resolve) => child.stdout!.once('data', resolve))));
    await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 60));
    await Promise.all(two.map((child) => new Promise((resolve) => child.once('exit', resolve).kill('SIGKILL'))));
    expect(bytesIn(folder)).toBeLessThanOrEqual(400_000);
    const cache = new CacheFolder(folder, 400_000);
    for (const name of fs.readdirSync(path.join(folder, 'pieces'))) {
      expect(name).toMatch(/^p\d+$/);
      expect(fs.readFileSync(cache.pathOf(name))).toEqual(Buffer.alloc(20_000, 1));
    }
    expect(Number(fs.readFileSync(path.join(folder, 'used'), 'utf8'))).toBe(bytesIn(folder));
  }
});

test('the claim of a process that was killed when its piece was there is not counted off', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const cache = new CacheFolder(folder, 30);
  for (const name of ['a', 'b', 'c']) await cache.write(cache.claim(name, 10, 100)!, new Uint8Array(10), 100);
  cache.use('a', 900);
  fs.symlinkSync(`${gone} 10`, `${cache.pathOf('a')}.claim`);
  cache.giveBack(cache.claim('d', 10, 50)!);
  expect(cache.has('a')).toBe(false);
  expect(cache.claim('a', 10, 900)).not.toBeNull();
  expect(fs.readFileSync(path.join(folder, 'used'), 'utf8')).toBe('30');
});

test('a piece comes into its place while nobody else counts', { timeout: 60_000 }, async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const cache = new CacheFolder(folder, 100);
  const program = `
    import { CacheFolder } from ${JSON.stringify(lib)};
    const cache = new CacheFolder(${JSON.stringify(folder)}, 100);
    const claim = cache.claim('a', 10, 5);
    console.log('claimed');
    process.stdin.once('data', async () => {
      await cache.write(claim, new Uint8Array(10), 5);
      process.exit();
    });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const lock = path.join(folder, 'lock');
  fs.symlinkSync(ownMark(), lock);
  child.stdin.write('go');
  const isWritten = () => fs.readdirSync(path.join(folder, 'pieces')).some((name) => !name.endsWith('.claim'));
  while (!isWritten()) await new Promise((resolve) => setTimeout(resolve, 5));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect([cache.has('a'), cache.isBeingWritten('a')]).toEqual([false, true]);
  fs.rmSync(lock);
  expect(await ended).toBe(0);
  expect([cache.has('a'), cache.isBeingWritten('a')]).toEqual([true, false]);
});

test('a claim of a process whose number another one has now does not keep others waiting', () => {
  const folder = path.join(emptyFolder(), 'cache');
  const cache = new CacheFolder(folder, 100);
  const [pid, born, place] = ownMark().split('-');
  fs.symlinkSync(`${pid}-${Number(born) + 1}-${place} 10`, `${cache.pathOf('a')}.claim`);
  fs.writeFileSync(`${cache.pathOf('a')}.${pid}-${Number(born) + 1}-${place}.part`, 'half');
  expect(cache.isBeingWritten('a')).toBe(false);
  expect(cache.claim('a', 10, 5)).not.toBeNull();
  expect(fs.readdirSync(path.join(folder, 'pieces'))).toEqual(['a.claim']);
  // Nor does a lock.
  fs.symlinkSync(`${pid}-${Number(born) + 1}-${place}`, path.join(folder, 'lock'));
  expect(cache.claim('b', 10, 5)).not.toBeNull();
});

test('what dead processes left is cleared away by whoever opens the folder, and what others write stays', () => {
  const folder = path.join(emptyFolder(), 'cache');
  const first = new CacheFolder(folder, 100);
  first.claim('mine', 20, 5);
  fs.symlinkSync(`${gone} 10`, `${first.pathOf('theirs')}.claim`);
  fs.writeFileSync(`${first.pathOf('theirs')}.${gone}.part`, 'half');
  fs.writeFileSync(`${first.pathOf('lost')}.${gone}.part`, 'half');
  new CacheFolder(folder, 100);
  expect(fs.readdirSync(path.join(folder, 'pieces'))).toEqual(['mine.claim']);
  expect(fs.readFileSync(path.join(folder, 'used'), 'utf8')).toBe('20');
});

/** Mounts a file system of 1 MiB in memory; null where that is not allowed. */
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

test('on a disk that is full nothing is kept and nothing is left half-written, until there is room again', async () => {
  const disk = smallDisk();
  if (disk === null) return expect(disk).toBeNull();
  try {
    const folder = path.join(disk, 'cache');
    const cache = new CacheFolder(folder, 100_000_000);
    expect(await cache.write(cache.claim('a', 500_000, 5)!, new Uint8Array(500_000), 5)).toBe(true);
    expect(await cache.write(cache.claim('b', 900_000, 5)!, new Uint8Array(900_000), 5)).toBe(false);
    expect(fs.readdirSync(path.join(folder, 'pieces'))).toEqual(['a']);
    expect(fs.readFileSync(path.join(folder, 'used'), 'utf8')).toBe('500000');
    // For a while nothing is tried.
    expect(cache.claim('c', 10, 5)).toBeNull();
    // Not even what says how much there is can be written.
    fs.writeFileSync(path.join(disk, 'other'), new Uint8Array(400_000));
    expect(() => fs.writeFileSync(path.join(disk, 'rest'), new Uint8Array(1_000_000))).toThrow('ENOSPC');
    const next = new CacheFolder(folder, 100_000_000);
    expect(next.claim('c', 10, 5)).toBeNull();
    expect(cache.has('a')).toBe(true);
    cache.drop('a');
    for (const name of ['other', 'rest']) fs.rmSync(path.join(disk, name), { force: true });
    const later = new CacheFolder(folder, 100_000_000);
    expect(await later.write(later.claim('d', 500_000, 5)!, new Uint8Array(500_000), 5)).toBe(true);
    expect(later.has('a')).toBe(false);
  } finally {
    execFileSync('umount', ['-l', disk]);
  }
});
