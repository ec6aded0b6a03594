import { cpSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { type Dataset, type Loader, type LoaderOptions, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';
import { batchesOf, linesOf, look, type Seen } from './loader-look.js';

const uncompressed = await packedSmall({ samples: 48 }, { imageFormat: 'npy', resize: 24, maxShardSamples: 12 });
const options = {
  transform: [{ name: 'randomResizedCrop', size: 32 }, { name: 'randomHorizontalFlip' }],
  ...{ batchSize: 12, shuffleUnit: 'chunk', streams: 4, blockSamples: 3, seed: 3, workers: 1 },
} as const satisfies LoaderOptions;

/** A busy machine may take long to open a file, and the loader then takes the disk for a slow one. */
function onFastDisk(dataset: Dataset): void {
  Object.defineProperty(dataset.files, 'isSlow', { get: () => false });
}

/** Bytes that the main thread has read from shards so far. */
function watchReads(dataset: Dataset): { bytes: number } {
  const watched = { bytes: 0 };
  const read = dataset.files.read.bind(dataset.files);
  dataset.files.read = (shard, offset, target) => {
    watched.bytes += target.length;
    return read(shard, offset, target);
  };
  return watched;
}

async function epochOf(loader: Loader): Promise<Seen[]> {
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  return seen;
}

/** The bytes that the main thread reads in each of three epochs. */
async function readPerEpoch(more: LoaderOptions): Promise<number[]> {
  await using dataset = await openDataset(uncompressed);
  onFastDisk(dataset);
  const watched = watchReads(dataset);
  await using loader = dataset.loader({ ...options, ...more });
  const bytes: number[] = [];
  for (let epoch = 0; epoch < 3; epoch++) {
    const before = watched.bytes;
    await epochOf(loader);
    bytes.push(watched.bytes - before);
  }
  return bytes;
}

test('crops that workers read out of cached shards are those of samples that are read whole', async () => {
  await using dataset = await openDataset(uncompressed);
  onFastDisk(dataset);
  const watched = watchReads(dataset);
  await using loader = dataset.loader({ ...options, workers: 2 });
  await epochOf(loader);
  const { bytes } = watched;
  for (const epoch of [1, 2]) {
    const seen = await epochOf(loader);
    const whole = await batchesOf(uncompressed, { ...options, epoch, checksum: 'always' });
    expect(linesOf(seen)).toEqual(linesOf(whole));
    expect(seen).toHaveLength(4);
  }
  expect(watched.bytes).toBe(bytes);
  expect(bytes).toBeGreaterThan(0);
});

test('samples are read whole where a checksum, a field or a step wants all of them', async () => {
  const plain = await readPerEpoch({ checksum: 'never' });
  expect(plain[0]).toBeGreaterThan(0);
  expect(plain.slice(1)).toEqual([0, 0]);
  for (const more of [{ checksum: 'always' }, { fields: ['cls'] }] as const) {
    const [first, ...later] = await readPerEpoch(more);
    for (const bytes of later) expect(bytes).toBeGreaterThan(first! / 2);
  }
});

test('a shard that is cut while workers read it makes bad samples, whose shard and key are named', async () => {
  const folder = path.join(emptyFolder(), 'cut');
  cpSync(uncompressed, folder, { recursive: true });
  await using dataset = await openDataset(folder);
  onFastDisk(dataset);
  await using loader = dataset.loader({ ...options, onBad: 'raise' });
  await epochOf(loader);
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.tar'))) {
    truncateSync(path.join(folder, name), 1024);
  }
  await expect(epochOf(loader)).rejects.toThrow(/tar: sample ".*" cannot be used: its shard ends at byte \d+/);
});

test('a shard that is gone ends the loop with its path', async () => {
  const folder = path.join(emptyFolder(), 'gone');
  cpSync(uncompressed, folder, { recursive: true });
  await using dataset = await openDataset(folder);
  onFastDisk(dataset);
  await using loader = dataset.loader(options);
  await epochOf(loader);
  rmSync(path.join(folder, '000000.tar'));
  await expect(epochOf(loader)).rejects.toThrow(/000000.tar cannot be opened: no such file or folder/);
});
