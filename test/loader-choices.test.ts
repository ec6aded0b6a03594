import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type LoaderOptions, openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder, packedSmall, smallImages } from './datasets.js';
import { batchesOf, keysOf, linesOf, validKeysOf } from './loader-look.js';

/** 20 samples of each class, assigned in turn; every fourth is longer than 3,000 bytes. */
const shards = await packedSmall(
  { samples: 80, classes: 4, bytes: (i) => (Math.floor(i / 4) % 4 === 0 ? 3000 + i : 0) },
  { maxShardSamples: 15 },
);
const base = { transform: 'raw', batchSize: 16, seed: 2, checksum: 'always' } as const;
const streaming = { ...base, shuffleUnit: 'chunk', streams: 4, blockSamples: 4 } as const;

/** Number of occurrences of each key. */
function timesOf(keys: readonly string[]): Map<string, number> {
  const times = new Map<string, number>();
  for (const key of keys) times.set(key, (times.get(key) ?? 0) + 1);
  return times;
}

const classOf = (key: string) => key.split('/')[0]!;

test('a subset by class contains its samples once each, with their labels', async () => {
  for (const options of [base, streaming]) {
    const seen = await batchesOf(shards, { ...options, classes: ['b', 3] });
    expect(new Set(keysOf(seen)).size).toBe(40);
    expect(keysOf(seen)).toHaveLength(40);
    expect(new Set(seen.flatMap(({ labels }) => labels))).toEqual(new Set([1, 3]));
  }
});

test('a subset by keys contains exactly these samples', async () => {
  const keys = ['a/0000', 'b/0041', 'd/0079', 'c/0002'];
  for (const options of [base, streaming]) {
    expect(keysOf(await batchesOf(shards, { ...options, keys })).toSorted()).toEqual(keys.toSorted());
  }
  await expect(batchesOf(shards, { ...base, keys: ['a/0000', 'a/9999'] })).rejects.toThrow(
    'keys: the dataset has no sample with the key "a/9999"',
  );
});

test('where selects by the columns of the index', async () => {
  for (const options of [base, streaming]) {
    const seen = await batchesOf(shards, { ...options, where: 'bytes >= 3000 and class in ("a", "c")' });
    const wanted = Array.from({ length: 80 }, (_, i) => i).filter((i) => i % 2 === 0 && Math.floor(i / 4) % 4 === 0);
    expect(keysOf(seen).map((key) => Number(key.slice(2)))).toHaveLength(wanted.length);
    expect(new Set(keysOf(seen).map((key) => Number(key.slice(2))))).toEqual(new Set(wanted));
  }
});

test('weights distribute an epoch of the usual length, and of any other length', async () => {
  const transform = [{ name: 'randomResizedCrop', size: 16, scale: [0.1, 1] }] as const;
  for (const options of [base, streaming]) {
    // As many as the sum of weights: each is used as often as its weight says, and its repetitions have other crops.
    const seen = await batchesOf(shards, { ...options, transform, weights: { a: 3, b: 0 }, samplesPerEpoch: 100 });
    const times = timesOf(keysOf(seen));
    expect(times.size).toBe(60);
    for (const [key, count] of times) expect(count).toBe(classOf(key) === 'a' ? 3 : 1);
    expect(new Set(linesOf(seen)).size).toBe(100);
    const inverse = await batchesOf(shards, { ...options, weights: Array.from({ length: 80 }, () => 1 / 20) });
    expect(timesOf(keysOf(inverse)).size).toBe(80);
    expect(keysOf(inverse)).toHaveLength(80);
  }
});

test('a sample is used as often as its share, rounded down or up, and differently in each epoch', async () => {
  for (const options of [base, streaming]) {
    const seen = await batchesOf(shards, {
      ...options,
      epochsPerLoop: 20,
      weights: ({ cls }) => [0, 0.25, 1.5, 1.25][cls]!,
    });
    const epochs = Array.from({ length: 20 }, (_, epoch) =>
      timesOf(keysOf(seen.filter((batch) => batch.epoch === epoch))),
    );
    expect(new Set(epochs.map((times) => [...times].toSorted().join())).size).toBe(20);
    for (const times of epochs) {
      expect([...times.values()].reduce((a, b) => a + b)).toBe(60);
      for (const [key, count] of times) {
        const allowed = { a: [], b: [1], c: [1, 2], d: [1, 2] }[classOf(key)]!;
        expect(allowed).toContain(count);
      }
    }
    const share = (cls: string) => keysOf(seen).filter((key) => classOf(key) === cls).length / 20 / 20;
    expect(Math.abs(share('b') - 0.25)).toBeLessThan(0.08);
    expect(Math.abs(share('c') - 1.5)).toBeLessThan(0.08);
    expect(Math.abs(share('d') - 1.25)).toBeLessThan(0.08);
  }
});

test('an epoch may have any number of samples of the endless sequence of passes', async () => {
  for (const options of [base, streaming]) {
    const passes = keysOf(await batchesOf(shards, { ...options, epochsPerLoop: 2 }));
    const short = await batchesOf(shards, { ...options, samplesPerEpoch: 32, epochsPerLoop: 5 });
    expect(short.map(({ epoch }) => epoch)).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    expect(keysOf(short)).toEqual(passes);
    const long = await batchesOf(shards, { ...options, samplesPerEpoch: 160 });
    expect(keysOf(long)).toEqual(passes);
  }
});

test('an endless loop continues from epoch to epoch', async () => {
  await using dataset = await openDataset(shards);
  for (const options of [base, streaming]) {
    const epochs = new Set<number>();
    const keys: string[] = [];
    for await (const batch of dataset.loader({ ...options, workers: 1, epochsPerLoop: Infinity })) {
      epochs.add(batch.epoch);
      keys.push(...batch.keys);
      if (batch.epoch === 6) break;
    }
    expect([...epochs]).toEqual([0, 1, 2, 3, 4, 5, 6]);
    for (let epoch = 0; epoch < 6; epoch++) expect(new Set(keys.slice(epoch * 80, epoch * 80 + 80)).size).toBe(80);
  }
});

test('without shuffling a subset is in the order of the dataset, across all ranks', async () => {
  await using dataset = await openDataset(shards);
  const inOrder: string[] = [];
  for await (const { key, label: cls } of dataset.samples()) if (cls === 2) inOrder.push(key);
  const options = { ...base, shuffle: false, classes: ['c'] } as const satisfies LoaderOptions;
  expect(keysOf(await batchesOf(shards, options))).toEqual(inOrder);
  expect(keysOf(await batchesOf(shards, { ...options, epoch: 3 }))).toEqual(inOrder);
  const ranks = await Promise.all([0, 1].map((rank) => batchesOf(shards, { ...options, rank, worldSize: 2 })));
  expect(ranks.flatMap(validKeysOf).toSorted()).toEqual(inOrder.toSorted());
});

test.each(['sample', 'chunk', 'shard'] as const)('the unit of the shuffle can be a %s', async (shuffleUnit) => {
  await using dataset = await openDataset(shards);
  const options = { ...base, shuffleUnit, streams: 2, blockSamples: 4 } as const;
  expect((await dataset.loader(options).info()).shuffleUnit).toBe(shuffleUnit);
  const seen = await batchesOf(shards, options);
  expect(new Set(keysOf(seen)).size).toBe(80);
  // Samples that are adjacent on disk: with whole shards many are in one batch, with single samples few.
  const numbers: number[][] = [];
  for await (const { indices: of } of dataset.loader({ ...options, workers: 1 })) numbers.push([...of]);
  const neighbours = numbers.flatMap((of) => of.filter((number) => of.includes(number + 1))).length;
  if (shuffleUnit === 'sample') expect(neighbours).toBeLessThan(25);
  else expect(neighbours).toBeGreaterThan(25);
});

test('a selection without a sample, and one that leaves no batch, throw errors', async () => {
  await expect(batchesOf(shards, { ...base, where: 'width > 10000' })).rejects.toThrow('No sample is selected');
  await expect(batchesOf(shards, { ...base, keys: ['a/0000'], lastBatch: 'drop' })).rejects.toThrow(
    'Epoch 0 has 1 sample, too few for a batch of 16',
  );
});

test('for a sparse selection only the selected samples are kept in memory, even if they are read in long reads', async () => {
  await using dataset = await openDataset(shards);
  const { files } = dataset;
  // Independent of how slow the disk of this machine appears.
  Object.defineProperty(files, 'isFar', { value: false });
  const read = files.read.bind(files);
  let reads = 0;
  files.read = (...given) => {
    reads++;
    return read(...given);
  };
  await using loader = dataset.loader({
    ...streaming,
    workers: 1,
    streams: 1,
    blockSamples: 64,
    classes: ['b'],
  });
  let bytes = 0;
  for await (const { encoded } of loader) for (const image of encoded!) bytes += image.length;
  expect(reads).toBeLessThan(10);
  // Each sample of a tar has two headers, and is padded to blocks of 512 bytes.
  expect(loader.report().readBufferPeakBytes).toBeLessThan(bytes + 20 * 4 * 1024);
});

test('with device undefined, batches stay in the memory of the host', async () => {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({ ...base, device: undefined });
  for await (const batch of loader) {
    expect(batch.size).toBe(16);
    break;
  }
  await loader.close();
  await dataset.close();
});

test('for several captions each epoch draws one, the same for any number of workers and after a resume', async () => {
  const folder = await smallImages({ samples: 12 });
  for (let i = 0; i < 12; i++) {
    const name = path.join(folder, 'a', String(i).padStart(4, '0'));
    writeFileSync(`${name}.txt`, `first ${i}\nsecond ${i}\n\nthird ${i}\n`);
    writeFileSync(`${name}.json`, JSON.stringify([`short ${i}`, `long ${i}`]));
  }
  const output = path.join(emptyFolder(), 'shards');
  await pack(folder, output, { workers: 1 });
  await using dataset = await openDataset(output);
  const captionsOf = async (options: LoaderOptions) => {
    await using loader = dataset.loader({
      transform: 'raw',
      batchSize: 5,
      captionSampling: 'random',
      seed: 4,
      ...options,
    });
    const seen = new Map<string, unknown[]>();
    let state: unknown;
    for await (const { keys, fields, index } of loader) {
      for (const [row, key] of keys.entries()) {
        seen.set(key, [...(seen.get(key) ?? []), fields.txt![row], fields.json![row]]);
      }
      if (index === 0) state ??= loader.state();
    }
    return { seen, state };
  };
  const { seen, state } = await captionsOf({ workers: 1, epochsPerLoop: 8 });
  for (const [key, texts] of seen) {
    const i = Number(key.split('/')[1]);
    for (const text of texts) {
      expect([`first ${i}`, `second ${i}`, `third ${i}`, `short ${i}`, `long ${i}`]).toContain(text);
    }
  }
  expect(new Set([...seen.values()].flat()).size).toBeGreaterThan(50);
  expect((await captionsOf({ workers: 3, epochsPerLoop: 8 })).seen).toEqual(seen);
  for (const [key, texts] of (await captionsOf({ workers: 1, state })).seen) {
    expect(texts).toEqual(seen.get(key)!.slice(0, 2));
  }
});
