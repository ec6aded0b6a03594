import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type Dataset, type Loader, type LoaderOptions, openDataset, ShardLengthError } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';
import { linesOf, look, type Seen, validKeysOf } from './loader-look.js';

const uncompressed = await packedSmall({ samples: 48 }, { imageFormat: 'npy', resize: 24, maxShardSamples: 12 });
const compressed = await packedSmall({ samples: 96, classes: 2 }, { maxShardSamples: 12 });
const options = {
  transform: [{ name: 'randomResizedCrop', size: 32 }, { name: 'randomHorizontalFlip' }],
  ...{ batchSize: 12, shuffleUnit: 'chunk', streams: 4, blockSamples: 3, seed: 3, workers: 1 },
} as const satisfies LoaderOptions;
/** With this option, a loader reads into its own memory. */
const IN_MEMORY = { readBufferBytes: '64MiB' } as const;

/** On a busy machine opening a file can take long, and the loader would consider the disk slow. */
function onFastDisk(dataset: Dataset): void {
  Object.defineProperty(dataset.files, 'isSlow', { get: () => false });
}

async function epochOf(loader: Loader): Promise<Seen[]> {
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  return seen;
}

/** Bytes of encoded samples in the memory of a loader, and the batches of three epochs. */
async function threeEpochs(location: string, more: LoaderOptions): Promise<{ bytes: number; lines: string[] }> {
  await using dataset = await openDataset(location);
  onFastDisk(dataset);
  await using loader = dataset.loader({ ...options, ...more });
  const seen: Seen[] = [];
  let bytes = 0;
  for (let epoch = 0; epoch < 3; epoch++) {
    seen.push(...(await epochOf(loader)));
    bytes = Math.max(bytes, loader.report().readBufferPeakBytes);
  }
  return { bytes, lines: linesOf(seen) };
}

test.each([
  ['JPEGs in blocks', compressed, {}],
  ['JPEGs in whole shards', compressed, { shuffleUnit: 'shard', streams: 2, workers: 3 }],
  ['JPEGs in single samples', compressed, { shuffleUnit: 'sample', batchSize: 7, lastBatch: 'partial' }],
  ['JPEGs in their order on disk', compressed, { shuffle: false, shuffleUnit: undefined, streams: 1, workers: 2 }],
  ['JPEGs that are always checked', compressed, { checksum: 'always', prefetchBatches: 1 }],
  ['some classes', compressed, { classes: ['b'] }],
  [
    'a custom order',
    compressed,
    { indices: [5, 90, 5, 31, 7], batchSize: 2, shuffleUnit: undefined, lastBatch: 'partial' },
  ],
  ['arrays', uncompressed, { workers: 2 }],
  ['arrays that are never checked', uncompressed, { checksum: 'never' }],
] as const)('the batches of %s equal those of a loader that reads into its own memory', async (_, location, more) => {
  const inShards = await threeEpochs(location, more);
  const inMemory = await threeEpochs(location, { ...more, ...IN_MEMORY });
  expect(inShards.lines).toEqual(inMemory.lines);
  expect(inShards.lines.length).toBeGreaterThan(10);
  expect(inShards.bytes).toBe(0);
  expect(inMemory.bytes).toBeGreaterThan(0);
});

test.each([{ transform: 'raw' }, { fields: ['cls'] }, IN_MEMORY] as const)(
  'samples are read into memory with %o',
  async (more) => {
    expect((await threeEpochs(compressed, more)).bytes).toBeGreaterThan(0);
  },
);

test('a run that resumes within the first blocks of its first epoch continues with the same pixels', async () => {
  await using dataset = await openDataset(compressed);
  onFastDisk(dataset);
  const more = { ...options, streams: 8, blockSamples: 12, batchSize: 10 } as const;
  await using whole = dataset.loader(more);
  const expected = linesOf(await epochOf(whole));
  await using stopped = dataset.loader(more);
  const lines: string[] = [];
  for await (const batch of stopped) {
    lines.push(...linesOf([look(batch)]));
    if (lines.length === 30) break;
  }
  await using resumed = dataset.loader({ ...more, state: stopped.state() });
  lines.push(...linesOf(await epochOf(resumed)));
  expect(lines).toEqual(expected);
});

test('lists of images and views of them equal those of a loader that reads into its own memory', async () => {
  const list = { ...options, transform: [{ name: 'resize', size: 20 }], collate: 'list' } as const;
  const pixels = async (more: LoaderOptions) => {
    await using dataset = await openDataset(compressed);
    onFastDisk(dataset);
    await using loader = dataset.loader({ ...list, ...more });
    const seen: string[] = [];
    for await (const batch of loader) {
      for (const { pixels, width, height } of batch.list ?? [])
        seen.push(`${width}x${height} ${Buffer.from(pixels).toString('base64')}`);
    }
    return seen;
  };
  expect(await pixels({})).toEqual(await pixels(IN_MEMORY));
  expect((await pixels({})).length).toBe(96);
});

test('a sample that is damaged in its shard is reported', async () => {
  const folder = path.join(emptyFolder(), 'damaged');
  cpSync(compressed, folder, { recursive: true });
  const shard = path.join(folder, '000000.tar');
  const bytes = readFileSync(shard);
  bytes[bytes.indexOf(Buffer.of(0xff, 0xd8, 0xff)) + 300]! ^= 1;
  writeFileSync(shard, bytes);
  await using dataset = await openDataset(folder);
  onFastDisk(dataset);
  await using loader = dataset.loader(options);
  await expect(epochOf(loader)).rejects.toThrow(/000000.tar: sample ".*" cannot be used: it .*changed/);
});

/** A copy whose shard 000001 is truncated. */
function cutCopy(location: string): string {
  const folder = path.join(emptyFolder(), 'cut');
  cpSync(location, folder, { recursive: true });
  const shard = path.join(folder, '000001.tar');
  truncateSync(shard, statSync(shard).size >> 1);
  return folder;
}

test.each([
  ['images in shards', compressed, {}],
  ['images in memory', compressed, IN_MEMORY],
  ['single samples', compressed, { shuffleUnit: 'sample', ...IN_MEMORY }],
  ['arrays of which only crops are read', uncompressed, { checksum: 'never' }],
] as const)('a truncated shard ends the loop, or its samples are bad: %s', async (_, location, more) => {
  const folder = cutCopy(location);
  await using dataset = await openDataset(folder);
  onFastDisk(dataset);
  const rules = { ...options, ...more, lastBatch: 'partial' } as const;
  await using raising = dataset.loader(rules);
  const error = await epochOf(raising).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ShardLengthError);
  expect((error as Error).message).toMatch(
    /^\/.*\/000001\.tar ends at byte \d+, but its index refers to bytes up to \d+: .* "shardtool verify --fix"\.$/,
  );
  const keys: string[] = [];
  const intact: string[] = [];
  await using unharmed = await openDataset(location);
  for await (const { shard, key } of unharmed.samples()) {
    keys.push(key);
    if (shard !== '000001.tar') intact.push(key);
  }
  for (const onBad of ['skip', 'replace'] as const) {
    await using loader = dataset.loader({
      ...rules,
      blockSamples: 12,
      streams: 1,
      shuffleUnit: 'chunk',
      ...more,
      onBad,
    });
    for (let epoch = 0; epoch < 3; epoch++) {
      const seen = await epochOf(loader);
      const { bad, badSamples } = loader.report();
      const lost = badSamples.map(({ key }) => key);
      expect(lost.length).toBe(bad);
      expect(bad).toBeGreaterThan(3);
      for (const { shard, reason } of badSamples) {
        expect(`${shard}: ${reason}`).toMatch(
          /^000001.tar: its shard ends at byte \d+, but its index refers to bytes up to \d+$/,
        );
      }
      const valid = validKeysOf(seen);
      if (onBad === 'skip') expect([...valid, ...lost].sort()).toEqual([...keys].sort());
      for (const key of intact) expect(valid).toContain(key);
      for (const key of lost) expect(valid).not.toContain(key);
    }
  }
});

/** A copy of the arrays in which one sample does not match its checksum. */
function changedCopy(): string {
  const folder = path.join(emptyFolder(), 'changed');
  cpSync(uncompressed, folder, { recursive: true });
  const shard = path.join(folder, '000001.tar');
  const bytes = readFileSync(shard);
  bytes[bytes.indexOf('NUMPY') + 200]! ^= 1;
  writeFileSync(shard, bytes);
  return folder;
}

test('a sample that was skipped for its checksum is not delivered in later epochs', async () => {
  await using dataset = await openDataset(changedCopy());
  onFastDisk(dataset);
  for (const more of [{}, IN_MEMORY]) {
    await using loader = dataset.loader({ ...options, ...more, onBad: 'skip' });
    for (let epoch = 0; epoch < 3; epoch++) {
      expect(validKeysOf(await epochOf(loader)).length).toBe(47);
      expect(loader.report().bad).toBe(1);
    }
  }
});

test.each([{}, IN_MEMORY] as const)(
  'a sample that was skipped for its checksum is skipped in all epochs of a loop that reads ahead, with %o',
  async (more) => {
    await using dataset = await openDataset(changedCopy());
    onFastDisk(dataset);
    await using loader = dataset.loader({
      ...{ ...options, ...more, onBad: 'skip' },
      ...{ batchSize: 4, prefetchBatches: 16, epochsPerLoop: 4 },
    });
    const valid = validKeysOf(await epochOf(loader));
    expect(valid.length).toBe(4 * 47);
    expect(new Set(valid).size).toBe(47);
  },
);

test('a loop that ended early has not checked the samples that it did not deliver', async () => {
  await using dataset = await openDataset(changedCopy());
  onFastDisk(dataset);
  let unseen = 0;
  for (const seed of [1, 2, 3, 4]) {
    const ahead = { batchSize: 4, prefetchBatches: 16 };
    await using loader = dataset.loader({ ...options, ...IN_MEMORY, ...ahead, seed, onBad: 'skip' });
    for await (const _ of loader) {
      while (loader.totals().readyBatches < 11) await setImmediate();
      break;
    }
    unseen += 1 - loader.report().bad;
    expect(validKeysOf(await epochOf(loader)).length).toBe(47);
  }
  expect(unseen).toBeGreaterThan(0);
});

test('samples that weights choose in a later epoch are checked', async () => {
  await using dataset = await openDataset(changedCopy());
  onFastDisk(dataset);
  const weights = Array.from({ length: 48 }, (_, i) => (i % 2 === 0 ? 1 : 3));
  await using intact = await openDataset(uncompressed);
  const changed = 12;
  const { key } = await intact.get(changed);
  for (const seed of [1, 2, 3, 4]) {
    await using loader = dataset.loader({ ...options, seed, onBad: 'skip', weights });
    let bad = 0;
    const valid: string[] = [];
    for (let epoch = 0; epoch < 5; epoch++) {
      valid.push(...validKeysOf(await epochOf(loader)));
      bad += loader.report().bad;
    }
    expect(bad).toBeGreaterThan(0);
    expect(valid).not.toContain(key);
  }
});

test('a sample that one rank skipped for its checksum is not delivered by another', async () => {
  await using dataset = await openDataset(changedCopy());
  onFastDisk(dataset);
  await using first = dataset.loader({ ...options, onBad: 'skip', rank: 0, worldSize: 2, batchSize: 6 });
  await using second = dataset.loader({ ...options, onBad: 'skip', rank: 1, worldSize: 2, batchSize: 6 });
  const valid: string[] = [];
  for (let epoch = 0; epoch < 6; epoch++) {
    for (const loader of [first, second]) valid.push(...validKeysOf(await epochOf(loader)));
  }
  expect(new Set(valid).size).toBe(47);
  expect(valid.length).toBe(6 * 47);
});

/** Changes one byte of each array. */
function changeAll(folder: string): void {
  for (const shard of ['000000.tar', '000001.tar', '000002.tar', '000003.tar']) {
    const file = path.join(folder, shard);
    const bytes = readFileSync(file);
    for (let at = bytes.indexOf('NUMPY'); at !== -1; at = bytes.indexOf('NUMPY', at + 1)) bytes[at + 200]! ^= 1;
    writeFileSync(file, bytes);
  }
}

test.each([
  ['weights', { weights: Array.from({ length: 48 }, (_, i) => (i % 2 === 0 ? 0.5 : 1.5)) }],
  ['several ranks', { rank: 0, worldSize: 2, batchSize: 6 }],
  ['a last batch that is dropped', { batchSize: 10, lastBatch: 'drop' }],
  ['weights, in its own memory', { ...IN_MEMORY, weights: Array.from({ length: 48 }, (_, i) => (i % 2 ? 0.5 : 1.5)) }],
] as const)('with %s, a sample is checked until it has been delivered once', async (_, more) => {
  const folder = path.join(emptyFolder(), 'later');
  cpSync(uncompressed, folder, { recursive: true });
  await using dataset = await openDataset(folder);
  onFastDisk(dataset);
  await using loader = dataset.loader({ ...options, ...more, onBad: 'skip' });
  const checked = new Set<string>();
  for (let epoch = 0; epoch < 2; epoch++) {
    for (const key of validKeysOf(await epochOf(loader))) checked.add(key);
  }
  expect(checked.size).toBeLessThan(48);
  changeAll(folder);
  let again = 0;
  let bad = 0;
  for (let epoch = 2; epoch < 6; epoch++) {
    const valid = validKeysOf(await epochOf(loader));
    for (const key of valid) expect(checked).toContain(key);
    again += valid.length;
    const { badSamples } = loader.report();
    for (const { key } of badSamples) expect(checked).not.toContain(key);
    bad += badSamples.length;
  }
  expect(again).toBeGreaterThan(0);
  expect(bad).toBeGreaterThan(0);
});

test('a deleted shard ends the loop with its path', async () => {
  const folder = path.join(emptyFolder(), 'gone');
  cpSync(uncompressed, folder, { recursive: true });
  await using dataset = await openDataset(folder);
  onFastDisk(dataset);
  const gone = path.join(folder, '000003.tar');
  rmSync(gone);
  for (const more of [{}, { onBad: 'skip' }, IN_MEMORY, { ...IN_MEMORY, onBad: 'skip' }] as const) {
    await using loader = dataset.loader({ ...options, ...more });
    await expect(epochOf(loader)).rejects.toThrow(new RegExp(`^${gone} cannot be opened: no such file or folder\\.$`));
  }
});

test('a process that can open fewer files than there are shards reads all of them', async () => {
  const shards = await packedSmall({ samples: 150 }, { maxShardSamples: 1 });
  const args = ['-c', 'ulimit -n 100 && exec "$@"', 'sh', process.execPath, 'test/few-files-child.mjs', shards];
  const { stdout, stderr } = spawnSync('sh', args, { encoding: 'utf8' });
  expect([stdout, stderr]).toEqual(['150\n', '']);
});
