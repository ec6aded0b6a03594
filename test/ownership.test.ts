import { createHash } from 'node:crypto';
import path from 'node:path';
import { type Batch, type LoaderOptions, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { packedPhotos, packedSmall } from './datasets.js';
import { maskedTar } from './masked-tar.js';

const small = await packedSmall({ samples: 60, classes: 2 });
const SQUARE = [{ name: 'resize', size: [16, 16] }] as const;
const MASKED = { image: 'npy', extraImages: ['depth.npy'], masks: ['seg.png'], fields: ['box.npy'] } as const;

const bytesOf = (array: ArrayBufferView) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** The content of the arrays of a batch. */
function shown({ images, extraImages, masks, encoded, list, labels, keys }: Batch): string {
  const hash = createHash('sha256');
  const pixels = [
    images,
    ...Object.values(extraImages),
    ...Object.values(masks),
    ...(list ?? []).map((one) => one.pixels),
  ];
  for (const array of [...pixels, ...(encoded ?? []), labels]) if (array !== null) hash.update(bytesOf(array));
  return `${keys} ${hash.digest('hex')}`;
}

/** Batches of three epochs in 3 slots, each compared when it is delivered and when the loop is over. */
async function twice(location: string, options: LoaderOptions): Promise<{ then: string[]; now: string[] }> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ workers: 1, batchSize: 7, prefetchBatches: 3, epochsPerLoop: 3, ...options });
  const kept: Batch[] = [];
  const then: string[] = [];
  for await (const batch of loader) {
    kept.push(batch);
    then.push(shown(batch));
    // Nothing is released.
    if (options.reuse === undefined) batch.release();
  }
  return { then, now: kept.map(shown) };
}

test.each<[string, string, LoaderOptions]>([
  ['of images', small, { transform: SQUARE }],
  ['of floats', small, { transform: [...SQUARE, { name: 'toDtype', dtype: 'float32' }] }],
  ['of lists', small, { collate: 'list' }],
  ['of encoded images', small, { transform: 'raw' }],
  ['with extra images and masks', path.dirname(maskedTar(60)), { ...MASKED, transform: SQUARE }],
])('batches %s keep their content as long as the caller keeps them', async (_, location, options) => {
  const { then, now } = await twice(location, options);
  expect(then.length).toBe(27);
  expect(new Set(then).size).toBe(27);
  expect(now).toEqual(then);
});

test.each<[string, LoaderOptions]>([
  ['images', { transform: SQUARE }],
  ['encoded images', { transform: 'raw', shuffleUnit: 'chunk', streams: 2, blockSamples: 8 }],
])('with reuse the %s of a batch are overwritten', async (_, options) => {
  const { then, now } = await twice(small, { ...options, reuse: true });
  expect(now).not.toEqual(then);
});

test('batches that were requested at the same time have their own images each', async () => {
  await using dataset = await openDataset(small);
  await using loader = dataset.loader({ workers: 1, batchSize: 7, prefetchBatches: 2, transform: SQUARE });
  const batches = loader[Symbol.asyncIterator]();
  const requested = Array.from({ length: 9 }, () => batches.next());
  const kept = (await Promise.all(requested)).map(({ value }) => shown(value!));
  const { then } = await twice(small, { transform: SQUARE });
  expect(kept).toEqual(then.slice(0, 9));
});

test('a loader that shares memory between batches requires reuse, and an invalid reuse is rejected', async () => {
  await using dataset = await openDataset(small);
  expect(() => dataset.loader({ slotFile: 3 })).toThrow('set reuse to true or "manual"');
  expect(() => dataset.loader({ reuse: 'later' as never })).toThrow('reuse is invalid: it is true, false or "manual"');
  expect(() => dataset.loader({ device: 'cuda', reuse: false })).toThrow('the memory of batches is always reused');
});

test('samples that are kept have their own bytes, and with reuse the bytes of later samples', async () => {
  await using dataset = await openDataset(await packedPhotos());
  for (const reuse of [undefined, true]) {
    const kept = [];
    for await (const sample of dataset.samples(reuse === undefined ? {} : { reuse })) kept.push(sample);
    expect(kept).toHaveLength(60);
    let own = 0;
    for (const { index: number, fields } of kept) {
      const found = await dataset.get(number);
      if (Object.keys(fields).every((name) => Buffer.compare(found.fields[name]!, fields[name]!) === 0)) own++;
    }
    if (reuse) expect(own).toBeLessThan(60);
    else expect(own).toBe(60);
  }
});
