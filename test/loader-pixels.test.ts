/** Images in batches, for any decoder. Tests of which samples there are, are in loader-batches.test.ts. */
import { openDataset, type StepInput } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { packedPhotos } from './datasets.js';
import { batchesOf } from './loader-look.js';

const shards = await packedPhotos();

test('images are uint8 [n, height, width, 3] and are not empty', async () => {
  const dataset = await openDataset(shards);
  let rows = 0;
  for await (const batch of dataset.loader({ batchSize: 8, transform: 'eval224', workers: 1 })) {
    rows += batch.size;
    expect(batch.shape?.slice(1)).toEqual([224, 224, 3]);
    expect(batch.images).toBeInstanceOf(Uint8Array);
    expect(batch.images!.length).toBe(batch.size * 224 * 224 * 3);
    for (let row = 0; row < batch.size; row++) {
      const pixels = batch.images!.subarray(row * 224 * 224 * 3, (row + 1) * 224 * 224 * 3);
      expect(new Set(pixels).size).toBeGreaterThan(50);
    }
  }
  expect(rows).toBe(60);
  await dataset.close();
});

test('the same seed gives identical batches for any number of workers, prefetch depth and checksum option', async () => {
  const base = { batchSize: 16, transform: 'train224', seed: 42 } as const;
  const one = await batchesOf(shards, { ...base, workers: 1 });
  expect(await batchesOf(shards, { ...base, workers: 3, prefetchBatches: 2, checksum: 'always' })).toEqual(one);
  const other = { workers: 2, prefetchBatches: 8, readConcurrency: 1, checksum: 'never' } as const;
  expect(await batchesOf(shards, { ...base, ...other })).toEqual(one);
});

test('float batches equal the uint8 batches, scaled and normalized', async () => {
  const mean = [0.485, 0.456, 0.406] as const;
  const std = [0.229, 0.224, 0.225] as const;
  const steps = [{ name: 'resize', size: [32, 48] }] as const;
  await using dataset = await openDataset(shards);
  const pixelsOf = async (transform: readonly StepInput[]) => {
    for await (const { images } of dataset.loader({ batchSize: 60, transform, seed: 3, workers: 1 }))
      return images!.slice();
    throw new Error('there was no batch');
  };
  const bytes = await pixelsOf(steps);
  const floats = await pixelsOf([...steps, { name: 'normalize', mean: [...mean], std: [...std] }]);
  expect(floats).toBeInstanceOf(Float32Array);
  for (const [row, y, x, c] of [
    [0, 0, 0, 0],
    [59, 31, 47, 2],
    [17, 5, 9, 1],
  ] as const) {
    const byte = bytes[((row * 32 + y) * 48 + x) * 3 + c]!;
    expect(floats[((row * 3 + c) * 32 + y) * 48 + x]).toBeCloseTo((byte / 255 - mean[c]!) / std[c]!, 4);
  }
});

test('images of different sizes are delivered as a list, one array each', async () => {
  const dataset = await openDataset(shards);
  let images = 0;
  for await (const batch of dataset.loader({
    batchSize: 16,
    workers: 1,
    collate: 'list',
    transform: [{ name: 'resize', size: 100 }],
  })) {
    for (const image of batch.list!) {
      expect(Math.min(image.height, image.width)).toBe(100);
      expect(image.pixels.length).toBe(image.height * image.width * 3);
      images++;
    }
  }
  await dataset.close();
  expect(images).toBe(60);
});
