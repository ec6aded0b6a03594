import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { CacheFolder } from '@shardtool/storage';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';
import { type FaultyServer, faultyServer } from './faulty-server.js';

let shards: string;
let bytes: number;
let server: FaultyServer;

beforeAll(async () => {
  shards = await packedSmall({ samples: 512, bytes: () => 10_000 }, { maxShardSamples: 4 });
  bytes = tars().reduce((sum, tar) => sum + fs.statSync(tar).size, 0);
  server = await faultyServer(path.dirname(shards));
});
afterAll(() => server.stop());

const tars = () =>
  fs
    .readdirSync(shards)
    .filter((name) => name.endsWith('.tar'))
    .map((name) => path.join(shards, name));
const OPTIONS = { transform: 'raw', batchSize: 8, seed: 3, workers: 1, streams: 4, blockSamples: 4 } as const;

/** What each of `epochs` epochs fetches, as a share of the dataset, and a digest of what it delivers. */
async function run(location: string, options: object, epochs: number) {
  const dataset = await openDataset(location);
  const loader = dataset.loader({ ...OPTIONS, ...options });
  const fetched: number[] = [];
  const digests: string[] = [];
  for (let e = 0; e < epochs; e++) {
    loader.setEpoch(e);
    const hash = createHash('sha256');
    for await (const batch of loader) {
      for (const image of batch.encoded!) hash.update(image);
      hash.update(batch.keys.join());
    }
    digests.push(hash.digest('hex'));
    fetched.push((loader.report().storage?.fetchedBytes ?? 0) / bytes);
  }
  await loader.close();
  await dataset.close();
  return { fetched, digests };
}

function bytesIn(folder: string): number {
  const pieces = path.join(folder, 'pieces');
  return fs
    .readdirSync(pieces)
    .reduce(
      (sum, name) =>
        sum + (fs.lstatSync(path.join(pieces, name)).isFile() ? fs.statSync(path.join(pieces, name)).size : 0),
      0,
    );
}

describe.each(['shard', 'chunk'] as const)('with %ss as units', (shuffleUnit) => {
  test('a cache of half of the data saves half of the fetching from the second epoch on, and changes no batch', async () => {
    const folder = path.join(emptyFolder(), 'cache');
    const maxBytes = Math.floor(bytes / 2);
    const { digests: expected } = await run(shards, { shuffleUnit }, 3);
    const { fetched, digests } = await run(
      `${server.url}/shards`,
      { shuffleUnit, cache: folder, cacheSize: maxBytes },
      3,
    );
    expect(digests).toEqual(expected);
    expect(fetched[0]).toBeLessThan(1.1);
    expect(fetched[1]).toBeLessThan(0.55);
    expect(fetched[2]).toBeLessThan(0.55);
    expect(fetched[2]).toBeGreaterThan(0.4);
    expect(bytesIn(folder)).toBeLessThanOrEqual(maxBytes);
    expect(fs.statSync(folder).mode & 0o777).toBe(0o700);
  });
});

test('a cache with room for all fetches once, also for the next process; and what is cut in it is fetched anew', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const options = { shuffleUnit: 'shard', cache: folder, cacheSize: 2 * bytes };
  const first = await run(`${server.url}/shards`, options, 2);
  expect(first.fetched[1]).toBe(0);
  const pieces = fs.readdirSync(path.join(folder, 'pieces'));
  fs.truncateSync(path.join(folder, 'pieces', pieces[0]!), 100);
  const again = await run(`${server.url}/shards`, options, 2);
  expect(again.digests).toEqual(first.digests);
  expect(again.fetched[0]).toBeGreaterThan(0);
  expect(again.fetched[0]).toBeLessThan(0.1);
  expect(CacheFolder.contents(folder).pieces).toBe(pieces.length);
  expect(CacheFolder.clear(folder).pieces).toBe(pieces.length);
  expect(CacheFolder.contents(folder)).toEqual({ pieces: 0, bytes: 0 });
});

test('a folder with other things in it is not taken for a cache', async () => {
  const folder = emptyFolder();
  fs.writeFileSync(path.join(folder, 'thesis.tex'), 'x');
  expect(() => new CacheFolder(folder, 1000)).toThrow(/is not a cache of shardtool/);
  expect(() => CacheFolder.clear(folder)).toThrow(/is not a cache of shardtool/);
});

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
  timeout: 60_000,
}, async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const kills = Number(process.env.SHARDTOOL_KILLS ?? 3);
  const lib = path.resolve('packages/storage/lib/index.js');
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
  // No process has this number.
  fs.symlinkSync(`${2 ** 30}-10`, `${cache.pathOf('a')}.claim`);
  cache.giveBack(cache.claim('d', 10, 50)!);
  expect(cache.has('a')).toBe(false);
  expect(cache.claim('a', 10, 900)).not.toBeNull();
  expect(fs.readFileSync(path.join(folder, 'used'), 'utf8')).toBe('30');
});

test('a piece comes into its place while nobody else counts', { timeout: 60_000 }, async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const cache = new CacheFolder(folder, 100);
  const lib = path.resolve('packages/storage/lib/index.js');
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
  fs.symlinkSync(`${process.pid} ${os.hostname()}`, lock);
  child.stdin.write('go');
  const isWritten = () => fs.readdirSync(path.join(folder, 'pieces')).some((name) => !name.endsWith('.claim'));
  while (!isWritten()) await new Promise((resolve) => setTimeout(resolve, 5));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect([cache.has('a'), cache.isBeingWritten('a')]).toEqual([false, true]);
  fs.rmSync(lock);
  expect(await ended).toBe(0);
  expect([cache.has('a'), cache.isBeingWritten('a')]).toEqual([true, false]);
});

test('two loaders on one cache fetch each piece once', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const options = { shuffleUnit: 'shard', cache: folder, cacheSize: 2 * bytes };
  const [a, b] = await Promise.all([run(`${server.url}/shards`, options, 1), run(`${server.url}/shards`, options, 1)]);
  expect(a.digests).toEqual(b.digests);
  expect(a.fetched[0]! + b.fetched[0]!).toBeLessThan(1.3);
});
