import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { openDataset, openMixture } from '@shardtool/reader';
import { CacheFolder } from '@shardtool/storage';
import { convert } from '@shardtool/writer';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';
import { type FaultyServer, faultyServer } from './faulty-server.js';

let shards: string;
let bytes: number;
let server: FaultyServer;

beforeAll(async () => {
  shards = await packedSmall({ samples: 128, bytes: () => 10_000 }, { maxShardSamples: 4 });
  bytes = tars().reduce((sum, tar) => sum + fs.statSync(tar).size, 0);
  server = await faultyServer(path.dirname(shards));
});
afterAll(() => server.stop());

const tars = () =>
  fs
    .readdirSync(shards)
    .filter((name) => name.endsWith('.tar'))
    .map((name) => path.join(shards, name));
const sizeOf = (folder: string) =>
  fs
    .readdirSync(folder)
    .filter((name) => name.endsWith('.tar'))
    .reduce((sum, name) => sum + fs.statSync(path.join(folder, name)).size, 0);
const MIXED = { transform: 'raw', batchSize: 8, seed: 3, workers: 1, blockSamples: 2, shuffleUnit: 'shard' } as const;
const OPTIONS = { transform: 'raw', batchSize: 8, seed: 3, workers: 1, streams: 4, blockSamples: 4 } as const;

/** The fetched share of the dataset in each of `epochs` epochs, and a digest of the delivered batches. */
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
  test('a cache for half of the data saves half of the fetching from the second epoch on, and changes no batch', async () => {
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

test('a cache with room for everything fetches once, also for the next process, and fetches truncated pieces again', async () => {
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
  expect((await CacheFolder.clear(folder)).pieces).toBe(pieces.length);
  expect(CacheFolder.contents(folder)).toEqual({ pieces: 0, bytes: 0 });
});

test('two loaders with one cache fetch each piece once', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const options = { shuffleUnit: 'shard', cache: folder, cacheSize: 2 * bytes };
  const [a, b] = await Promise.all([run(`${server.url}/shards`, options, 1), run(`${server.url}/shards`, options, 1)]);
  expect(a.digests).toEqual(b.digests);
  expect(a.fetched[0]! + b.fetched[0]!).toBeLessThan(1.3);
});

test('a mixture of remote datasets gives the same batches as on disk, and a cache for half of it saves fetching', {
  timeout: 120_000,
}, async () => {
  const other = await packedSmall({ samples: 32, bytes: () => 10_000, classes: 2 }, { maxShardSamples: 4 });
  const otherServer = await faultyServer(path.dirname(other));
  const all = bytes + sizeOf(other);
  const epochs = async (places: readonly string[], options: object) => {
    const parts = places.map((dataset, i) => ({ dataset, repeat: 1 + i }));
    await using mixture = await openMixture(parts);
    await using loader = mixture.loader({ ...MIXED, ...options });
    const fetched: number[] = [];
    const digests: string[] = [];
    for (let epoch = 0; epoch < 3; epoch++) {
      const hash = createHash('sha256');
      for await (const batch of loader) {
        for (const image of batch.encoded!) hash.update(image);
        hash.update(batch.keys.join());
      }
      digests.push(hash.digest('hex'));
      fetched.push((loader.report().storage?.fetchedBytes ?? 0) / all);
    }
    return { fetched, digests };
  };
  const local = await epochs([shards, other], {});
  const cache = path.join(emptyFolder(), 'cache');
  const cacheSize = Math.floor(all / 2);
  const remote = await epochs([`${server.url}/shards`, `${otherServer.url}/shards`], { cache, cacheSize });
  expect(remote.digests).toEqual(local.digests);
  // An epoch reads 1.2 times the data, because the smaller dataset is used twice; most such small shards are split among streams.
  expect(remote.fetched[2]).toBeLessThan(0.85);
  expect(bytesIn(cache)).toBeLessThanOrEqual(cacheSize);
  await otherServer.stop();
});

describe('shards without checksums', () => {
  let folder: string;
  let place: FaultyServer;

  /** A file of three row groups; `other` has the same names, counts and sizes, but other images. */
  beforeAll(async () => {
    folder = emptyFolder();
    const table = path.join(folder, 'table');
    await convert(shards, table, { format: 'parquet', workers: 1 });
    const files = fs.readdirSync(path.join(table, 'data')).filter((name) => name.endsWith('.parquet'));
    for (const name of ['one', 'other', 'place']) fs.mkdirSync(path.join(folder, name));
    for (const name of files.slice(0, 3)) {
      const bytesOf = fs.readFileSync(path.join(table, 'data', name));
      fs.writeFileSync(path.join(folder, 'one', name), bytesOf);
      // After the header of the first image.
      for (let at = 5000; at < 9000; at += 100) bytesOf[at]! ^= 1;
      fs.writeFileSync(path.join(folder, 'other', name), bytesOf);
    }
    place = await faultyServer(folder);
  });
  afterAll(() => place.stop());

  const locations = (name: string, root: string) =>
    fs
      .readdirSync(path.join(folder, 'one'))
      .sort()
      .map((file) => `${root}/${name}/${file}`);

  async function digestOf(places: readonly string[], options: object): Promise<string> {
    const hash = createHash('sha256');
    await using dataset = await openDataset(places);
    await using loader = dataset.loader({ ...OPTIONS, shuffle: false, ...options });
    for await (const batch of loader) {
      for (const image of batch.encoded!) hash.update(image);
      hash.update(batch.keys.join());
    }
    return hash.digest('hex');
  }
  const digestFrom = (name: string, options: object = {}) => digestOf(locations(name, place.url), options);

  test('two locations with equal names, counts and sizes keep their own images in one cache', async () => {
    const cache = { cache: path.join(emptyFolder(), 'cache'), cacheSize: 2 * bytes };
    const [one, other] = [await digestFrom('one'), await digestFrom('other')];
    expect(other).not.toBe(one);
    for (let run = 0; run < 2; run++) {
      expect(await digestFrom('one', cache)).toBe(one);
      expect(await digestFrom('other', cache)).toBe(other);
    }
  });

  test('a file that was replaced by one of the same size gives the new images', async () => {
    const cache = { cache: path.join(emptyFolder(), 'cache'), cacheSize: 2 * bytes };
    for (const name of ['one', 'other', 'one']) {
      fs.cpSync(path.join(folder, name), path.join(folder, 'place'), { recursive: true });
      expect(await digestFrom('place', cache)).toBe(await digestFrom(name));
    }
  });

  test('a damaged piece is fetched again', async () => {
    const cacheFolder = path.join(emptyFolder(), 'cache');
    const cache = { cache: cacheFolder, cacheSize: 2 * bytes };
    const one = await digestFrom('one', cache);
    const pieces = fs.readdirSync(path.join(cacheFolder, 'pieces'));
    expect(pieces).not.toEqual([]);
    for (const name of pieces) {
      const piece = path.join(cacheFolder, 'pieces', name);
      const { mtime } = fs.statSync(piece);
      const content = fs.readFileSync(piece);
      for (let at = 100; at < content.length; at += 5000) content[at]! ^= 0x10;
      fs.writeFileSync(piece, content);
      fs.utimesSync(piece, new Date(), mtime);
    }
    expect(await digestFrom('one', cache)).toBe(one);
  });

  test.each([
    { shuffleUnit: 'shard', streams: 2 },
    { shuffleUnit: 'chunk', blockSamples: 2 },
    { shuffleUnit: 'sample' },
  ])('row groups are the same through a cache as without one: %o', async (options) => {
    const cache = { cache: path.join(emptyFolder(), 'cache'), cacheSize: 2 * bytes };
    const shuffled = { ...options, shuffle: true };
    const expected = await digestOf(locations('one', path.join(folder)), shuffled);
    expect(await digestFrom('one', { ...shuffled, ...cache })).toBe(expected);
    expect(CacheFolder.contents(cache.cache).pieces).toBeGreaterThan(shuffled.shuffleUnit === 'sample' ? -1 : 0);
  });
});
