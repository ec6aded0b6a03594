import { setTimeout as sleep } from 'node:timers/promises';
import { type Dataset, type LoaderOptions, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { packedSmall } from './datasets.js';
import { batchesOf, keysOf, linesOf, look, type Seen } from './loader-look.js';

const even = await packedSmall({ samples: 240 }, { maxShardSamples: 40 });
/** Sizes from 1 KB to 1 MB, with the large ones together. */
const uneven = await packedSmall(
  { samples: 120, bytes: (i) => (i < 90 ? 1000 + 50 * i : 250_000 + 25_000 * (i - 90)) },
  { maxShardSamples: 15, shuffle: false },
);
const chunks = {
  transform: 'raw',
  shuffleUnit: 'chunk',
  streams: 8,
  blockSamples: 4,
  workers: 1,
  seed: 5,
} as const;

/** Bytes that were read from shards, and the number of running reads; each read takes `delayMs` longer. */
function watchReads(dataset: Dataset, delayMs = 0): { bytes: number; underWay: number; reads: number } {
  const watched = { bytes: 0, underWay: 0, reads: 0 };
  const { files } = dataset;
  const read = files.read.bind(files);
  files.read = async (shard, offset, target) => {
    watched.bytes += target.length;
    watched.reads++;
    watched.underWay++;
    await sleep(delayMs);
    await read(shard, offset, target).finally(() => watched.underWay--);
  };
  return watched;
}

/** The smallest limit that an error suggests. */
async function namedLimit(options: LoaderOptions): Promise<number> {
  const error = await batchesOf(uneven, options).catch((reason: Error) => reason);
  expect(error).toBeInstanceOf(Error);
  return Number(/readBufferBytes to at least (\d+)/.exec((error as Error).message)![1]);
}

test('samples from 1 KB to 1 MB, sorted by size, can be read with the smallest accepted buffer, epoch after epoch', async () => {
  const options = { ...chunks, batchSize: 8, epochsPerLoop: 4 };
  const ample = await batchesOf(uneven, options);
  const least = await namedLimit({ ...options, readBufferBytes: 1_000_000 });
  await using dataset = await openDataset(uneven);
  await using loader = dataset.loader({ ...options, readBufferBytes: least });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  expect(linesOf(seen)).toEqual(linesOf(ample));
  const peak = loader.report().readBufferPeakBytes;
  expect(peak).toBeLessThanOrEqual(least);
  expect(peak).toBeGreaterThan(least * 0.8);
  await expect(batchesOf(uneven, { ...options, readBufferBytes: Math.floor(least * 0.85) })).rejects.toThrow(
    /readBufferBytes to at least \d+/,
  );
});

test('read buffers use about as much memory as computed beforehand', async () => {
  await using dataset = await openDataset(even);
  await using loader = dataset.loader({ ...chunks, batchSize: 8 });
  const { readBufferBytes, readBufferLimitBytes } = await loader.info();
  for await (const _ of loader);
  const { readBufferPeakBytes } = loader.report();
  expect(readBufferPeakBytes).toBeLessThan(readBufferBytes * 1.2);
  expect(readBufferPeakBytes).toBeGreaterThan(readBufferBytes * 0.6);
  expect(readBufferLimitBytes).toBeGreaterThan(readBufferBytes);
});

test('if everything is kept in memory, the smallest accepted limit is enough', async () => {
  const options = { transform: 'raw', workers: 1, batchSize: 16, epochsPerLoop: 3 } as const;
  const least = await namedLimit({ ...options, readBufferBytes: 1000 });
  await using dataset = await openDataset(uneven);
  await using loader = dataset.loader({ ...options, readBufferBytes: least });
  let samples = 0;
  for await (const batch of loader) samples += batch.size;
  expect(samples).toBe(360);
  expect(loader.report().readBufferPeakBytes).toBeLessThanOrEqual(least);
});

test('a limit above the memory of the machine is accepted', async () => {
  expect(keysOf(await batchesOf(even, { ...chunks, readBufferBytes: 2 ** 50 }))).toHaveLength(240);
});

test('reads stop if the consumer stops requesting batches', async () => {
  await using dataset = await openDataset(even);
  const watched = watchReads(dataset);
  await using loader = dataset.loader({ ...chunks, batchSize: 4, prefetchBatches: 2, epochsPerLoop: Infinity });
  const iterator = loader[Symbol.asyncIterator]();
  await iterator.next();
  // Otherwise the reads would never end, or would read more than the buffers hold.
  for (let before = -1; watched.reads !== before || watched.underWay > 0; ) {
    before = watched.reads;
    await sleep(100);
  }
  const { reads, bytes } = watched;
  expect(bytes).toBeLessThan((await loader.info()).readBufferBytes * 2);
  // More batches than the buffers hold need further reads.
  for (let batch = 0; batch < 30; batch++) await iterator.next();
  expect(watched.reads).toBeGreaterThan(reads);
  await iterator.return(undefined);
});

test('many short epochs in a row need little more memory than one', async () => {
  await using dataset = await openDataset(even);
  const least = await namedLimit({ ...chunks, batchSize: 16, readBufferBytes: 1000 });
  await using loader = dataset.loader({
    ...chunks,
    batchSize: 16,
    lastBatch: 'pad',
    epochsPerLoop: 25,
    readBufferBytes: least,
  });
  const epochs = new Map<number, Set<string>>();
  for await (const { epoch, keys } of loader) {
    if (!epochs.has(epoch)) epochs.set(epoch, new Set());
    for (const key of keys) epochs.get(epoch)!.add(key);
  }
  expect([...epochs.values()].map((keys) => keys.size)).toEqual(Array(25).fill(240));
});

test('an iteration that ends early, at any point, leaves no running read', async () => {
  await using dataset = await openDataset(even);
  const watched = watchReads(dataset, 3);
  for (let batches = 1; batches <= 8; batches++) {
    const loader = dataset.loader({
      ...chunks,
      batchSize: 4,
      prefetchBatches: 2,
      readConcurrency: 2,
      epochsPerLoop: Infinity,
    });
    let seen = 0;
    for await (const _ of loader) if (++seen === batches) break;
    expect(watched.underWay).toBe(0);
  }
});

test('an error while a shard is read is thrown after all batches that were read before it', async () => {
  const whole = await batchesOf(even, { ...chunks, batchSize: 8 });
  await using dataset = await openDataset(even);
  const { files } = dataset;
  const read = files.read.bind(files);
  let reads = 0;
  files.read = async (...given) => {
    if (++reads > 20) throw new Error('the cable was pulled');
    await read(...given);
  };
  const seen: Seen[] = [];
  const loop = async () => {
    for await (const batch of dataset.loader({ ...chunks, batchSize: 8 })) seen.push(look(batch));
  };
  await expect(loop()).rejects.toThrow('the cable was pulled');
  expect(seen.length).toBeGreaterThan(3);
  expect(seen).toEqual(whole.slice(0, seen.length));
});

test.each([
  ['streams', { shuffleUnit: 'chunk' }],
  ['keeps everything', { shuffleUnit: 'sample' }],
] as const)('a dataset that is closed while a loader %s ends its loop with the reason', async (_, { shuffleUnit }) => {
  const dataset = await openDataset(even);
  const loader = dataset.loader({
    ...chunks,
    shuffleUnit,
    batchSize: 8,
    prefetchBatches: 2,
    epochsPerLoop: Infinity,
  });
  let batches = 0;
  const loop = async () => {
    for await (const _ of loader) if (++batches === 2) await dataset.close();
  };
  await expect(loop()).rejects.toThrow('The dataset was closed while it was in use');
  await expect(dataset.get(0)).rejects.toThrow('The dataset was closed');
});

test('a loader that is closed while a batch is awaited, or between two, ends its loop with the reason and can start again', async () => {
  await using dataset = await openDataset(even);
  const watched = watchReads(dataset, 5);
  await using loader = dataset.loader({ ...chunks, batchSize: 8, prefetchBatches: 2 });
  const starting = loader[Symbol.asyncIterator]().next();
  await loader.close();
  await expect(starting).rejects.toThrow('The loader was closed');
  const iterator = loader[Symbol.asyncIterator]();
  await iterator.next();
  const awaited = expect(iterator.next().then(() => iterator.next())).rejects.toThrow('The loader was closed');
  await loader.close();
  expect(watched.underWay).toBe(0);
  await awaited;
  for await (const _ of loader) {
    await loader.close();
    break;
  }
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  expect(new Set(keysOf(seen)).size).toBe(240);
});

test('encoded batches that are held stay unchanged until they are released, even after the end of the loop', async () => {
  await using dataset = await openDataset(even);
  await using loader = dataset.loader({
    ...chunks,
    batchSize: 60,
    prefetchBatches: 3,
    reuse: 'manual',
    epochsPerLoop: 1,
  });
  const held = [];
  for await (const batch of loader) {
    held.push({ batch, seen: look(batch) });
    if (held.length > 2) held.shift()!.batch.release();
  }
  const next = loader[Symbol.asyncIterator]();
  await next.next();
  await sleep(50);
  for (const { batch, seen } of held) expect(look(batch)).toEqual(seen);
  await expect(next.next()).rejects.toThrow('All 3 batch slots are in use');
});

test('batches may be released in any order', async () => {
  await using dataset = await openDataset(even);
  await using loader = dataset.loader({
    ...chunks,
    batchSize: 12,
    prefetchBatches: 4,
    reuse: 'manual',
    epochsPerLoop: 3,
  });
  const held = [];
  const seen: Seen[] = [];
  for await (const batch of loader) {
    seen.push(look(batch));
    held.push(batch);
    if (held.length === 3) held.splice(seen.length % 3, 1)[0]!.release();
  }
  expect(linesOf(seen)).toEqual(linesOf(await batchesOf(even, { ...chunks, batchSize: 12, epochsPerLoop: 3 })));
});
