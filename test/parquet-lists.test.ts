/** Parquet columns with a list of images in each row. The fixtures are written by test/fixtures/parquet/make.py. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ShardtoolError } from '@shardtool/base';
import { type Dataset, openDataset } from '@shardtool/reader';
import { convert, verify } from '@shardtool/writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';

const folder = 'test/fixtures/parquet/lists';
const files = readdirSync(folder).filter((name) => name.endsWith('.parquet'));
/** For each row, the checksums of its items; null for an item without bytes. */
const expected: (string | null)[][] = JSON.parse(readFileSync(path.join(folder, 'expected.json'), 'utf8'));
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** The items of each sample by the numbers in their field names; the first one is the image and has no number. */
async function itemsOf(dataset: Dataset): Promise<(string | null)[][]> {
  const found: (string | null)[][] = [];
  for await (const { fields } of dataset.samples({ checksum: true })) {
    const items: (string | null)[] = [];
    for (const [name, bytes] of Object.entries(fields)) {
      if (name === 'cls') continue;
      const number = name === 'jpg' || name === 'png' ? 0 : Number(/^images\.(\d+)\.(?:jpg|png)$/.exec(name)![1]);
      while (items.length <= number) items.push(null);
      items[number] = sha256(bytes);
    }
    found.push(items);
  }
  return found;
}

/** In files of `datasets` there are no items without bytes. */
function wanted(name: string): (string | null)[][] {
  return name === 'hub.parquet' ? expected.map((row) => row.filter((item) => item !== null)) : expected;
}

test.each(files)(
  'the images in a row of %s are fields of its sample, and the first of them is its image',
  async (name) => {
    await using dataset = await openDataset(path.join(folder, name));
    expect(await itemsOf(dataset)).toEqual(wanted(name));
    const labels: number[] = [];
    for await (const { label } of dataset.samples()) labels.push(label);
    expect(labels).toEqual(expected.map((_, i) => (7 * i) % 3));
  },
);

test('tars converted from lists have the same images, and paths become a column', async () => {
  const output = path.join(emptyFolder(), 'tars');
  await convert(path.join(folder, 'snappy-1.parquet'), output, { workers: 1 });
  await using dataset = await openDataset(output);
  expect(await itemsOf(dataset)).toEqual(expected);
  expect((await dataset.get(7)).columns.images_path).toBe('["7-0.jpg","7-1.jpg","7-2.jpg"]');
  expect((await verify(output, { workers: 1 })).faults).toBe(0);
});

test('row groups whose lists are all empty have samples without images, read in place and converted', async () => {
  const file = 'test/fixtures/parquet/empty-lists.parquet';
  const output = path.join(emptyFolder(), 'tars');
  await convert(file, output, { workers: 1 });
  for (const location of [file, output]) {
    await using dataset = await openDataset(location);
    const items = await itemsOf(dataset);
    expect(items.map(({ length }) => length)).toEqual([1, 0, 0, 0, 0, 0]);
    const labels: number[] = [];
    for await (const { label } of dataset.samples()) labels.push(label);
    expect(labels).toEqual([0, 1, 2, 3, 4, 5]);
  }
});

test('a changed byte in a list column never yields other images', async () => {
  const original = readFileSync(path.join(folder, 'snappy-1.parquet'));
  const place = emptyFolder();
  let number = 0;
  await fc.assert(
    fc.asyncProperty(fc.nat(original.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const bytes = Buffer.from(original);
      bytes[at]! ^= change;
      const file = path.join(place, `${number++}.parquet`);
      writeFileSync(file, bytes);
      try {
        await using dataset = await openDataset(file);
        const found = await itemsOf(dataset);
        for (const [row, items] of found.entries()) if (items.length > 0) expect(items).toEqual(expected[row]);
      } catch (error) {
        if (!(error instanceof ShardtoolError)) throw error;
      }
    }),
    { seed: 7, numRuns: 150 },
  );
});
