import { createHash } from 'node:crypto';
import { type Batch, type LoaderOptions, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { packedPhotos } from './datasets.js';

const shards = await packedPhotos();
const SMALL = [{ name: 'resize', size: [24, 24] }] as const;

/** What of a batch is compared: batches themselves are only valid until the next one. */
interface Seen {
  readonly epoch: number;
  readonly keys: readonly string[];
  readonly labels: readonly number[];
  readonly valid: readonly number[];
  readonly pixels: Uint8Array | null;
}

/** The same with a hash in place of the pixels: megabytes are no reading matter for a failed assertion. */
function brief(seen: readonly Seen[]) {
  return seen.map(({ pixels, ...rest }) => ({
    ...rest,
    pixels: pixels && createHash('sha256').update(pixels).digest('hex'),
  }));
}

function look(batch: Batch): Seen {
  const { epoch, keys, labels, valid, images } = batch;
  return {
    epoch,
    keys,
    labels: [...labels],
    valid: [...valid],
    pixels: images === null ? null : new Uint8Array(images.buffer, images.byteOffset, images.byteLength).slice(),
  };
}

async function batches(options: LoaderOptions, location = shards): Promise<Seen[]> {
  const dataset = await openDataset(location);
  const loader = dataset.loader({ workers: 1, ...options });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  await loader.close();
  await dataset.close();
  return seen;
}

const keysOf = (seen: readonly Seen[]) => seen.flatMap(({ keys }) => keys);

test('an epoch has every sample exactly once, with the class of its folder', async () => {
  const seen = await batches({ batchSize: 16, transform: 'raw' });
  expect(seen.map(({ keys }) => keys.length)).toEqual([16, 16, 16, 12]);
  expect(new Set(keysOf(seen)).size).toBe(60);
  const classes = ['astronaut', 'cat', 'coffee', 'galaxies', 'moon', 'rocket'];
  for (const { keys, labels } of seen) {
    expect(keys.map((key) => classes.indexOf(key.split('/')[0]!))).toEqual(labels);
  }
});

test('images are uint8 [n, height, width, 3] and hold a picture', async () => {
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

test('the same seed gives the same batches to the byte, whatever the workers, the prefetch depth and the checksum', async () => {
  const base = { batchSize: 16, transform: 'train224', seed: 42 } as const;
  const one = brief(await batches({ ...base, workers: 1 }));
  expect(brief(await batches({ ...base, workers: 3, prefetchBatches: 2, checksum: 'always' }))).toEqual(one);
  const other = await batches({ ...base, workers: 2, prefetchBatches: 8, readConcurrency: 1, checksum: 'never' });
  expect(brief(other)).toEqual(one);
});

test('another seed and another epoch give another order and other crops', async () => {
  const base = { batchSize: 60, transform: 'train224', seed: 1 } as const;
  const [first] = await batches(base);
  const [otherSeed] = await batches({ ...base, seed: 2 });
  const [otherEpoch] = await batches({ ...base, epoch: 1 });
  expect(otherSeed!.keys).not.toEqual(first!.keys);
  expect(otherEpoch!.keys).not.toEqual(first!.keys);
  const crop = (seen: Seen, key: string) => {
    const row = seen.keys.indexOf(key);
    return seen.pixels!.subarray(row * 150_528, (row + 1) * 150_528);
  };
  const key = first!.keys[0]!;
  expect(Buffer.compare(crop(otherEpoch!, key), crop(first!, key))).not.toBe(0);
});

test.each(['sample', 'chunk', 'shard'] as const)(
  'units of a %s give every sample once, in few streams and small blocks',
  async (shuffleUnit) => {
    const seen = await batches({ batchSize: 7, transform: 'raw', shuffleUnit, streams: 4, blockSamples: 3 });
    expect(keysOf(seen).toSorted()).toEqual([...new Set(keysOf(seen))].toSorted());
    expect(keysOf(seen)).toHaveLength(60);
  },
);

test('iterating again gives the next epoch, and repeat goes through several in one loop', async () => {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({ batchSize: 30, transform: SMALL, workers: 1, seed: 5 });
  const epochs: Seen[][] = [];
  for (let i = 0; i < 2; i++) {
    epochs.push([]);
    for await (const batch of loader) epochs[i]!.push(look(batch));
  }
  await loader.close();
  await dataset.close();
  expect(epochs.map((seen) => seen[0]!.epoch)).toEqual([0, 1]);
  const both = await batches({ batchSize: 30, transform: SMALL, seed: 5, repeat: 2 });
  expect(brief(both)).toEqual(brief(epochs.flat()));
});

test('without shuffling samples come in the order of the dataset', async () => {
  const dataset = await openDataset(shards);
  const inOrder: string[] = [];
  for await (const sample of dataset.samples()) inOrder.push(sample.key);
  await dataset.close();
  expect(keysOf(await batches({ batchSize: 7, transform: 'raw', shuffle: false }))).toEqual(inOrder);
});

test('raw batches hold the encoded images, which are the files that were packed', async () => {
  const { readFile } = await import('node:fs/promises');
  const dataset = await openDataset(shards);
  let rows = 0;
  for await (const batch of dataset.loader({ batchSize: 16, transform: 'raw', checksum: 'always', workers: 1 })) {
    rows += batch.size;
    expect(batch.images).toBeNull();
    for (const [row, key] of batch.keys.entries()) {
      expect(Buffer.from(batch.encoded![row]!).equals(await readFile(`examples/photos/${key}.jpg`))).toBe(true);
    }
  }
  expect(rows).toBe(60);
  await dataset.close();
});

test('float batches are the uint8 ones, scaled and normalised', async () => {
  const mean = [0.485, 0.456, 0.406];
  const std = [0.229, 0.224, 0.225];
  const steps = [{ name: 'resize', size: [32, 48] }] as const;
  const [bytes] = await batches({ batchSize: 60, transform: steps, seed: 3 });
  const [floats] = await batches({
    batchSize: 60,
    transform: [...steps, { name: 'normalize', mean, std }] as never,
    seed: 3,
  });
  const pixels = new Float32Array(floats!.pixels!.buffer);
  for (const [row, y, x, c] of [
    [0, 0, 0, 0],
    [59, 31, 47, 2],
    [17, 5, 9, 1],
  ] as const) {
    const byte = bytes!.pixels![((row * 32 + y) * 48 + x) * 3 + c]!;
    expect(pixels[((row * 3 + c) * 32 + y) * 48 + x]).toBeCloseTo((byte / 255 - mean[c]!) / std[c]!, 4);
  }
});

test('images of differing size come as a list, one array each', async () => {
  const dataset = await openDataset(shards);
  let images = 0;
  for await (const batch of dataset.loader({
    batchSize: 16,
    collate: 'list',
    workers: 1,
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

test('two loops over one loader at the same time are refused', async () => {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({ batchSize: 16, transform: 'raw', workers: 1 });
  const first = loader[Symbol.asyncIterator]();
  await first.next();
  await expect(loader[Symbol.asyncIterator]().next()).rejects.toThrow('is being iterated already');
  await first.return(undefined);
  await dataset.close();
});

test('an option that is not allowed is an error that names it', async () => {
  const dataset = await openDataset(shards);
  expect(() => dataset.loader({ batchSize: 0 })).toThrow('batchSize');
  expect(() => dataset.loader({ batchsize: 8 } as never)).toThrow('batchsize');
  await expect(batches({ readBufferBytes: 1000 })).rejects.toThrow(/readBufferBytes to at least \d+/);
  await dataset.close();
});

test('with manual release all slots may be held, and asking for one more is an error instead of a wait for ever', async () => {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({ batchSize: 4, transform: 'eval224', prefetchBatches: 3, release: 'manual' });
  const iterator = loader[Symbol.asyncIterator]();
  const held: Batch[] = [];
  for (let i = 0; i < 3; i++) held.push((await iterator.next()).value!);
  const pixels = held.map((batch) => batch.images!.slice());
  await new Promise((resolve) => setTimeout(resolve, 50));
  for (const [i, batch] of held.entries()) {
    expect(Buffer.compare(batch.images as Uint8Array, pixels[i] as Uint8Array)).toBe(0);
  }
  await expect(iterator.next()).rejects.toThrow('All 3 batch slots are held');
  await dataset.close();
});
