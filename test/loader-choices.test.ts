import { type LoaderOptions, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { packedSmall } from './datasets.js';
import { batchesOf, keysOf } from './loader-look.js';

const shards = await packedSmall({ samples: 60, classes: 3 }, { maxShardSamples: 10 });
const options = { batchSize: 8, transform: 'raw', seed: 2, streams: 4, blockSamples: 4 } as const;

const keys = async (more: LoaderOptions) => keysOf(await batchesOf(shards, { ...options, ...more }));
const all = (await keys({})).toSorted();

test('a subset by class has every sample of these classes once, by name or by number', async () => {
  const expected = all.filter((key) => !key.startsWith('b/'));
  expect((await keys({ classes: ['a', 'c'] })).toSorted()).toEqual(expected);
  expect((await keys({ classes: [0, 2] })).toSorted()).toEqual(expected);
});

test('a subset by keys has these and no others; a key that is not there is an error that names it', async () => {
  const wanted = [all[3]!, all[40]!, all[41]!];
  expect((await keys({ keys: wanted })).toSorted()).toEqual(wanted);
  await expect(keys({ keys: ['a/nothing'] })).rejects.toThrow('"a/nothing"');
});

test('a subset by an expression over the columns of the index', async () => {
  const few = await keys({ where: 'cls in (0, 2) and width >= 1 and not key = "a/0000"' });
  expect(few.toSorted()).toEqual(all.filter((key) => !key.startsWith('b/') && key !== 'a/0000'));
  await expect(keys({ where: 'nothing > 3' })).rejects.toThrow('nothing');
});

test('weights say how often a sample comes, by class or by a function', async () => {
  const counts = new Map<string, number>();
  for (const key of await keys({ weights: { a: 2, b: 0 } })) counts.set(key, (counts.get(key) ?? 0) + 1);
  for (const key of all) expect(counts.get(key) ?? 0).toBe({ a: 2, b: 0, c: 1 }[key[0] as 'a' | 'b' | 'c']);
  expect(await keys({ weights: ({ key }) => (key === 'b/0001' ? 3 : 0) })).toEqual(['b/0001', 'b/0001', 'b/0001']);
});

test('a sample that comes twice in an epoch is cropped in two ways', async () => {
  const seen = await batchesOf(shards, { ...options, keys: ['a/0000'], weights: { a: 2 }, transform: 'train224' });
  const [first, second] = seen.flatMap(({ rows }) => rows);
  expect(first).not.toBe(second);
});

test('short epochs of epochSamples see every sample once before any comes again', async () => {
  const seen = await keys({ epochSamples: 20, repeat: 3 });
  expect(seen).toHaveLength(60);
  expect(seen.toSorted()).toEqual(all);
});

test('repeat goes on for ever where it is Infinity, each epoch in an order of its own', async () => {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...options, repeat: Number.POSITIVE_INFINITY, workers: 1 });
  const epochs: string[][] = [[], [], []];
  for await (const batch of loader) {
    if (batch.epoch === 3) break;
    epochs[batch.epoch]!.push(...batch.keys);
  }
  for (const epoch of epochs) expect(epoch.toSorted()).toEqual(all);
  expect(new Set(epochs.map((epoch) => epoch.join())).size).toBe(3);
});

test('without shuffling, samples come as they lie in the shards', async () => {
  await using dataset = await openDataset(shards);
  const stored: string[] = [];
  for await (const { key } of dataset.samples()) stored.push(key);
  expect(await keys({ shuffle: false, streams: 1 })).toEqual(stored);
});

test.each(['sample', 'chunk', 'shard'] as const)('units may be forced to a %s', async (shuffleUnit) => {
  const seen = await keys({ shuffleUnit });
  expect(seen.toSorted()).toEqual(all);
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...options, shuffleUnit });
  expect((await loader.info()).shuffleUnit).toBe(shuffleUnit);
});
