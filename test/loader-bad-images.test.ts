/** Images that cannot be decoded. Tests that do not depend on the codec are in loader-bad-samples.test.ts. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { BadSampleError, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { badKeys, badRows, base, order, run, shards, soundRows } from './bad-samples.js';
import { emptyFolder } from './datasets.js';
import { keysOf, look, type Seen } from './loader-look.js';
import { archive, entry } from './tar-craft.js';

test('batches before a bad sample are delivered completely', async () => {
  await using dataset = await openDataset(shards);
  const seen: Seen[] = [];
  const loop = async () => {
    for await (const batch of dataset.loader({ ...base, batchSize: 6 })) seen.push(look(batch));
  };
  const error = await loop().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(BadSampleError);
  expect((error as BadSampleError).key).toBe(badKeys[0]);
  expect((error as BadSampleError).message).toMatch(
    /^\d{6}\.tar: sample "a\/\d{4}" cannot be used: .*shardtool verify --check decode/,
  );
  expect(keysOf(seen)).toEqual(order.slice(0, 6));
});

test('skip marks the row as invalid and clears it, and all other rows are unchanged', async () => {
  const blank = crc32(new Uint8Array(24 * 24 * 3));
  for (const lastBatch of ['partial', 'pad'] as const) {
    const { seen, loader } = await run({ onBad: 'skip', batchSize: 10, lastBatch });
    expect(keysOf(seen).slice(0, 48)).toEqual(order);
    const valid = seen.flatMap((batch) => batch.valid).slice(0, 48);
    expect(valid).toEqual(order.map((key) => (badKeys.includes(key) ? 0 : 1)));
    const rows = seen.flatMap((batch) => batch.rows).slice(0, 48);
    expect(rows).toEqual(soundRows.map((row, i) => (badRows.includes(i) ? blank : row)));
    const { bad, badSamples } = loader.report();
    expect(bad).toBe(5);
    expect(badSamples.map(({ key }) => key)).toEqual(badKeys);
    expect(badSamples[0]!.reason).toMatch(/ends|premature|cannot be decoded/i);
    expect(badSamples[0]).not.toHaveProperty('replacement');
  }
});

test('replace uses the next good sample of the same block, and all other rows are unchanged', async () => {
  const { seen, loader } = await run({ onBad: 'replace', batchSize: 10 });
  const expected = order.slice();
  // After the last row of a block its first row follows.
  expected[7] = order[0]!;
  expected[18] = order[20]!;
  expected[19] = order[20]!;
  expected[32] = order[33]!;
  // The first row of that block is bad, too.
  expected[39] = order[33]!;
  expect(keysOf(seen)).toEqual(expected);
  expect(seen.flatMap((batch) => batch.rows)).toEqual(expected.map((key) => soundRows[order.indexOf(key)]));
  expect(seen.flatMap((batch) => batch.valid)).toEqual(Array(48).fill(1));
  const { bad, badSamples } = loader.report();
  expect(bad).toBe(5);
  expect(badSamples.map(({ key, replacement }) => [key, replacement])).toEqual(
    badRows.map((row) => [order[row], expected[row]]),
  );
});

test('a reason that is a full sentence ends with one full stop within the message', async () => {
  const file = path.join(emptyFolder(), 'foreign.tar');
  writeFileSync(file, archive(entry({ name: 's0.jpg' }, 'GIF, or so it was hoped')));
  const message =
    /cannot be used: .* \(JPEG, PNG, GIF, WebP, TIFF, AVIF, BMP, PPM, PGM or PBM\)\. Run "shardtool verify --check decode"/;
  await expect(run({ ...base, batchSize: 1 }, file)).rejects.toThrow(message);
  await expect(run({ ...base, batchSize: 1, onBad: 'replace' }, file)).rejects.toThrow(/PBM\)\. Its block/);
});

test('bad images in a list are empty if they are skipped', async () => {
  await using dataset = await openDataset(shards);
  const options = { ...base, onBad: 'skip', collate: 'list', transform: [{ name: 'resize', size: 24 }] } as const;
  const heights: number[] = [];
  for await (const { list } of dataset.loader(options)) heights.push(...list!.map(({ height }) => height));
  expect(heights.map((height) => height === 0)).toEqual(order.map((key) => badKeys.includes(key)));
});
