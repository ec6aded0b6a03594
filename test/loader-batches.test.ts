import { type Batch, type LoaderOptions, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { packedPhotos } from './datasets.js';
import { keysOf, look, type Seen } from './loader-look.js';

const shards = await packedPhotos();
const SMALL = [{ name: 'resize', size: [24, 24] }] as const;

async function batches(options: LoaderOptions, location = shards): Promise<Seen[]> {
  const dataset = await openDataset(location);
  const loader = dataset.loader({ workers: 1, ...options });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  await loader.close();
  await dataset.close();
  return seen;
}

test('an epoch contains every sample exactly once, with the class of its folder', async () => {
  const seen = await batches({ batchSize: 16, transform: 'raw' });
  expect(seen.map(({ keys }) => keys.length)).toEqual([16, 16, 16, 12]);
  expect(new Set(keysOf(seen)).size).toBe(60);
  const classes = ['astronaut', 'cat', 'coffee', 'galaxies', 'moon', 'rocket'];
  for (const { keys, labels } of seen) {
    expect(keys.map((key) => classes.indexOf(key.split('/')[0]!))).toEqual(labels);
  }
});

test('another seed or another epoch gives another order and other crops', async () => {
  const base = { batchSize: 60, transform: 'train224', seed: 1 } as const;
  const [first] = await batches(base);
  const [otherSeed] = await batches({ ...base, seed: 2 });
  const [otherEpoch] = await batches({ ...base, epoch: 1 });
  expect(otherSeed!.keys).not.toEqual(first!.keys);
  expect(otherEpoch!.keys).not.toEqual(first!.keys);
  const crop = ({ keys, rows }: Seen, key: string) => rows[keys.indexOf(key)];
  const key = first!.keys[0]!;
  expect(crop(first!, key)).toEqual(expect.any(Number));
  expect(crop(otherEpoch!, key)).not.toBe(crop(first!, key));
});

test.each(['sample', 'chunk', 'shard'] as const)(
  'with %s units every sample is delivered once, with few streams and small blocks',
  async (shuffleUnit) => {
    const seen = await batches({ batchSize: 7, transform: 'raw', shuffleUnit, streams: 4, blockSamples: 3 });
    expect(keysOf(seen).toSorted()).toEqual([...new Set(keysOf(seen))].toSorted());
    expect(keysOf(seen)).toHaveLength(60);
  },
);

test('iterating again gives the next epoch, and epochsPerLoop gives several in one loop', async () => {
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
  const both = await batches({ batchSize: 30, transform: SMALL, seed: 5, epochsPerLoop: 2 });
  expect(both).toEqual(epochs.flat());
});

test('without shuffling, samples are in the order of the dataset', async () => {
  const dataset = await openDataset(shards);
  const inOrder: string[] = [];
  for await (const sample of dataset.samples()) inOrder.push(sample.key);
  await dataset.close();
  expect(keysOf(await batches({ batchSize: 7, transform: 'raw', shuffle: false }))).toEqual(inOrder);
});

test('raw batches contain the encoded images, which equal the packed files', async () => {
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

test('two concurrent loops over one loader are rejected', async () => {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({ batchSize: 16, transform: 'raw', workers: 1 });
  const first = loader[Symbol.asyncIterator]();
  await first.next();
  await expect(loader[Symbol.asyncIterator]().next()).rejects.toThrow('A loop over this loader is already running');
  await first.return(undefined);
  await dataset.close();
});

test('the error for an invalid option names it', async () => {
  const dataset = await openDataset(shards);
  expect(() => dataset.loader({ batchSize: 0 })).toThrow('batchSize');
  expect(() => dataset.loader({ batchsize: 8 } as never)).toThrow('batchsize');
  await expect(batches({ readBufferBytes: 1000 })).rejects.toThrow(/readBufferBytes to at least \d+/);
  await dataset.close();
});

test('with manual reuse all slots can be held, and requesting one more throws an error instead of waiting forever', async () => {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({ batchSize: 4, transform: 'eval224', prefetchBatches: 3, reuse: 'manual' });
  const iterator = loader[Symbol.asyncIterator]();
  const held: Batch[] = [];
  for (let i = 0; i < 3; i++) held.push((await iterator.next()).value!);
  const pixels = held.map((batch) => batch.images!.slice());
  await new Promise((resolve) => setTimeout(resolve, 50));
  for (const [i, batch] of held.entries()) {
    expect(Buffer.compare(batch.images as Uint8Array, pixels[i] as Uint8Array)).toBe(0);
  }
  await expect(iterator.next()).rejects.toThrow('All 3 batch slots are in use');
  await dataset.close();
});
