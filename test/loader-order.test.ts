import { openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { packedSmall } from './datasets.js';
import { batchesOf, keysOf, linesOf, validKeysOf } from './loader-look.js';

const shards = await packedSmall({ samples: 80, classes: 4 }, { maxShardSamples: 15 });
const base = { transform: 'raw', batchSize: 8, checksum: 'always', lastBatch: 'partial' } as const;
const dataset = await openDataset(shards);
const keys: string[] = [];
for await (const { key } of dataset.samples()) keys.push(key);

/** 100 indices all over the dataset, some of them twice. */
const order = Uint32Array.from({ length: 100 }, (_, at) => (at * 37 + 11) % 80);
const inOrder = Array.from(order, (sample) => keys[sample]!);

test('samples are delivered in the given order, from memory and read in blocks', async () => {
  for (const blocks of [{}, { blockSamples: 4 }, { blockSamples: 4, streams: 6 }]) {
    expect(keysOf(await batchesOf(shards, { ...base, ...blocks, indices: order }))).toEqual(inOrder);
    expect(keysOf(await batchesOf(shards, { ...base, ...blocks, indices: [...order], epochsPerLoop: 2 }))).toEqual([
      ...inOrder,
      ...inOrder,
    ]);
  }
});

test('ranks take turns in the order, like a distributed sampler', async () => {
  const ranks = await Promise.all(
    [0, 1, 2].map((rank) => batchesOf(shards, { ...base, indices: order, blockSamples: 4, rank, worldSize: 3 })),
  );
  ranks.forEach((batches, rank) => {
    expect(keysOf(batches)).toEqual(inOrder.filter((_, at) => at % 3 === rank));
  });
});

test('a sample that occurs twice in an epoch gets another crop the second time', async () => {
  const transform = [{ name: 'randomResizedCrop', size: 16, scale: [0.1, 1] }] as const;
  const lines = linesOf(await batchesOf(shards, { ...base, transform, indices: [5, 5, 5], blockSamples: 1 }));
  expect(new Set(lines).size).toBe(3);
});

test('a different order per epoch can be given as a list of consecutive orders', async () => {
  const batches = await batchesOf(shards, {
    ...base,
    indices: [3, 1, 2, 2, 3, 1],
    samplesPerEpoch: 3,
    epochsPerLoop: 2,
  });
  const ofEpoch = (epoch: number) => keysOf(batches.filter((batch) => batch.epoch === epoch));
  expect([ofEpoch(0), ofEpoch(1)]).toEqual([[3, 1, 2].map((n) => keys[n]), [2, 3, 1].map((n) => keys[n])]);
});

test('a run resumes in the middle of an order, and not with another order', async () => {
  const loader = dataset.loader({ ...base, indices: order, blockSamples: 4 });
  let seen = 0;
  for await (const _ of loader) if (++seen === 5) break;
  const state = loader.state();
  await loader.close();
  expect(keysOf(await batchesOf(shards, { ...base, indices: order, state }))).toEqual(inOrder.slice(40));
  await expect(batchesOf(shards, { ...base, indices: order.toReversed(), state })).rejects.toThrow('selection');
});

/** 30 groups of three samples, some of which are in several groups. */
const groups = Array.from({ length: 30 }, (_, g) => [0, 1, 2].map((i) => (g * 11 + i * 29) % 80));
const groupsInOrder = groups.map((group) => group.map((sample) => keys[sample]!));

/** The groups in the batches of the ranks, in the order over all ranks. */
function groupsOf(ranks: Awaited<ReturnType<typeof batchesOf>>[]): string[][] {
  const found: string[][] = [];
  for (let b = 0; b < ranks[0]!.length; b++) {
    for (let row = 0; row < ranks[0]![b]!.keys.length; row += 3) {
      for (const batches of ranks) {
        const { keys: of, valid } = batches[b]!;
        if (valid[row] === 1) found.push(of.slice(row, row + 3));
      }
    }
  }
  return found;
}

test('groups of an order stay together on one rank and in one batch, and resume from a state on any number of ranks', async () => {
  const options = { ...base, indices: groups, globalBatchSize: 24, batchSize: undefined, blockSamples: 5 };
  const onRanks = (worldSize: number, more = {}) =>
    Promise.all(
      Array.from({ length: worldSize }, (_, rank) => batchesOf(shards, { ...options, ...more, rank, worldSize })),
    );
  for (const worldSize of [1, 2, 4]) expect(groupsOf(await onRanks(worldSize))).toEqual(groupsInOrder);
  await using loader = dataset.loader({ ...options, rank: 1, worldSize: 2, workers: 1 });
  let seen = 0;
  for await (const _ of loader) if (++seen === 2) break;
  for (const worldSize of [1, 2, 4]) {
    expect(groupsOf(await onRanks(worldSize, { state: loader.state() }))).toEqual(groupsInOrder.slice(16));
  }
  await expect(batchesOf(shards, { ...base, indices: groups.flat(), state: loader.state() })).rejects.toThrow(
    'selection',
  );
});

test('an option that would split a group is rejected with its name', async () => {
  await expect(batchesOf(shards, { ...base, indices: groups })).rejects.toThrow(
    'batchSize is 8, but indices has groups of 3',
  );
  const options = { ...base, batchSize: 6, indices: groups };
  await expect(batchesOf(shards, { ...options, onBad: 'replace' })).rejects.toThrow("onBad 'replace' would put");
  const sizes = { transform: [], aspectBuckets: [[8, 8]] } as const;
  await expect(batchesOf(shards, { ...options, ...sizes })).rejects.toThrow('aspectBuckets would separate');
  await expect(batchesOf(shards, { ...options, indices: [[1, 2], [3]] })).rejects.toThrow(
    'all groups must have the same size',
  );
});

test('a run in a custom order resumes with another number of ranks', async () => {
  const loader = dataset.loader({ ...base, indices: order });
  let seen = 0;
  for await (const _ of loader) if (++seen === 5) break;
  const state = loader.state();
  await loader.close();
  const ranks = await Promise.all(
    [0, 1, 2].map((rank) => batchesOf(shards, { ...base, indices: order, state, rank, worldSize: 3 })),
  );
  const rest = inOrder.slice(40);
  ranks.forEach((batches, rank) => {
    expect(validKeysOf(batches)).toEqual(rest.filter((_, at) => (at + 40) % 3 === rank));
  });
});

test('the error for options that conflict with an order, and for an invalid order, is one sentence', async () => {
  for (const other of [{ where: 'width > 1' }, { weights: { a: 2 } }, { shuffle: true }, { classes: ['a'] }]) {
    await expect(batchesOf(shards, { ...base, ...other, indices: order })).rejects.toThrow(
      `indices already selects the samples and sets their order: remove ${Object.keys(other)[0]}, or indices.`,
    );
  }
  await expect(batchesOf(shards, { ...base, indices: [80] })).rejects.toThrow('indices[0] is 80');
  await expect(batchesOf(shards, { ...base, indices: ['a'] as never })).rejects.toThrow('indices is invalid');
});
