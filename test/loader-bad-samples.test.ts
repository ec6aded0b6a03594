import { copyFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { type LoaderOptions, type LoaderReport, openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder, packedSmall, smallImages } from './datasets.js';
import { batchesOf, look, type Seen } from './loader-look.js';

const CUT = 'test/fixtures/odd-images/truncated.png';

/** 40 small images of which these are cut in the middle: packing takes them, decoding does not. */
async function withBad(bad: readonly string[]): Promise<string> {
  const images = await smallImages({ samples: 40 });
  for (const key of bad) copyFileSync(CUT, path.join(images, `${key}.bad.png`));
  const output = path.join(emptyFolder(), 'shards');
  await pack(images, output, { maxShardSamples: 8, workers: 1 });
  return output;
}

// Two streams: with the default of 192, so few samples make blocks of one.
const options = {
  streams: 2,
  blockSamples: 8,
  batchSize: 6,
  transform: [{ name: 'resize', size: [16, 16] }],
  seed: 4,
  workers: 2,
} as const;

async function run(location: string, more: LoaderOptions): Promise<{ seen: Seen[]; report: LoaderReport }> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ ...options, ...more });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  return { seen, report: loader.report() };
}

/** `epoch key row-checksum valid` a row. */
const rows = (seen: readonly Seen[]) =>
  seen.flatMap(({ keys, rows: sums, valid }) => keys.map((key, row) => ({ key, sum: sums[row], valid: valid[row] })));

const location = await withBad(['a/0003', 'a/0017']);
const BAD = ['a/0003_bad', 'a/0017_bad'];

test('by default a bad sample ends the loop with an error that names its shard, its key and the remedy', async () => {
  await expect(run(location, {})).rejects.toThrow(
    /^00000\d\.tar: sample "a\/00\d\d_bad" cannot be used: .*onBadSample to 'skip' or 'substitute'/,
  );
});

test('a skipped sample leaves its row marked as not valid, and everything else where it was', async () => {
  const { seen, report } = await run(location, { onBadSample: 'skip' });
  const all = rows(seen);
  expect(all).toHaveLength(42);
  expect(all.filter(({ valid }) => valid === 0).map(({ key }) => key)).toEqual(expect.arrayContaining(BAD));
  expect(all.filter(({ valid }) => valid === 0)).toHaveLength(2);
  expect(report.bad).toBe(2);
  expect(report.badSamples.map(({ key }) => key).toSorted()).toEqual(BAD);
  const again = await run(location, { onBadSample: 'skip', workers: 1, prefetchBatches: 2 });
  expect(rows(again.seen)).toEqual(all);
});

test('a substituted sample gives its row to the next good one of its block, and everything else stays where it was', async () => {
  const skipped = rows((await run(location, { onBadSample: 'skip' })).seen);
  const { seen, report } = await run(location, { onBadSample: 'substitute' });
  const all = rows(seen);
  expect(all.every(({ valid }) => valid === 1)).toBe(true);
  expect(all.some(({ key }) => BAD.includes(key))).toBe(false);
  for (const [row, { key, sum, valid }] of skipped.entries()) {
    if (valid === 1) expect(all[row]).toEqual({ key, sum, valid });
    else expect(report.badSamples.find((bad) => bad.key === key)?.substitute).toBe(all[row]!.key);
  }
  expect(report.bad).toBe(2);
});

test('a block without any good sample is an error, whichever is tried', async () => {
  const images = emptyFolder();
  for (let i = 0; i < 6; i++) copyFileSync(CUT, path.join(images, `${i}.png`));
  const output = path.join(emptyFolder(), 'shards');
  await pack(images, output, { workers: 1 });
  await expect(run(output, { onBadSample: 'substitute' })).rejects.toThrow(/no sample of the block/);
});

/** Changes one byte within the payload of a sample. */
async function flipByte(shards: string, number: number): Promise<string> {
  await using dataset = await openDataset(shards);
  const shard = dataset.shards.findIndex((_, k) => dataset.files.firstSample[k + 1]! > number);
  const index = await dataset.files.index(shard);
  const row = number - dataset.files.firstSample[shard]!;
  const file = await open(dataset.shards[shard]!.path, 'r+');
  const at = index.fields.get('jpg')!.offset[row]! + index.fields.get('jpg')!.bytes[row]! - 1;
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, at);
  byte[0]! ^= 0xff;
  await file.write(byte, 0, 1, at);
  await file.close();
  return index.key[row]!;
}

test('a byte that changed since the pack is found by checksum always and first-epoch, and not looked for by never', async () => {
  const shards = await packedSmall({ samples: 40 }, { maxShardSamples: 8 });
  const key = await flipByte(shards, 21);
  for (const checksum of ['always', 'first-epoch'] as const) {
    await expect(batchesOf(shards, { ...options, checksum })).rejects.toThrow(
      new RegExp(`sample "${key}" cannot be used: it has changed since it was packed`),
    );
  }
  const seen = await batchesOf(shards, { ...options, checksum: 'never' });
  expect(seen.flatMap(({ keys }) => keys)).toHaveLength(40);
});

test('a byte that changes after the first epoch is found by always alone', async () => {
  for (const checksum of ['always', 'first-epoch'] as const) {
    const shards = await packedSmall({ samples: 40 }, { maxShardSamples: 8 });
    await using dataset = await openDataset(shards);
    // Streamed in blocks, so that the second epoch reads the shards again.
    await using loader = dataset.loader({ ...options, checksum, shuffleUnit: 'chunk', blockSamples: 4 });
    for await (const _ of loader);
    await flipByte(shards, 5);
    const second = async () => {
      for await (const _ of loader);
    };
    if (checksum === 'always') await expect(second()).rejects.toThrow('it has changed since it was packed');
    else await second();
  }
});
