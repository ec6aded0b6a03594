import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { openDataset, openMixture } from '@shardtool/reader';
import { CacheFolder } from '@shardtool/storage';
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
const OPTIONS = { transform: 'raw', batchSize: 8, seed: 3, workers: 1, shuffleStreams: 4, blockSamples: 4 } as const;

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

test('two loaders on one cache fetch each piece once', async () => {
  const folder = path.join(emptyFolder(), 'cache');
  const options = { shuffleUnit: 'shard', cache: folder, cacheSize: 2 * bytes };
  const [a, b] = await Promise.all([run(`${server.url}/shards`, options, 1), run(`${server.url}/shards`, options, 1)]);
  expect(a.digests).toEqual(b.digests);
  expect(a.fetched[0]! + b.fetched[0]!).toBeLessThan(1.3);
});

test('a mixture of remote datasets gives the batches of the disk, and a cache for half of it saves fetching', {
  timeout: 120_000,
}, async () => {
  const other = await packedSmall({ samples: 32, bytes: () => 10_000, classes: 2 }, { maxShardSamples: 4 });
  const far = await faultyServer(path.dirname(other));
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
  const remote = await epochs([`${server.url}/shards`, `${far.url}/shards`], { cache, cacheSize });
  expect(remote.digests).toEqual(local.digests);
  // An epoch reads 1.2 times of all, since the smaller one comes twice; streams cut most of shards as small as these.
  expect(remote.fetched[2]).toBeLessThan(0.85);
  expect(bytesIn(cache)).toBeLessThanOrEqual(cacheSize);
  await far.stop();
});
