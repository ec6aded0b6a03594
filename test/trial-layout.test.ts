import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { deflateSync } from 'node:zlib';
import { LAYOUTS } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { indexShards } from '@shardtool/writer';
import { beforeAll, expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { TRIAL } from './trial-layout/entry.js';

// A new layout is a folder and this line.
Object.assign(LAYOUTS, { trial: TRIAL });

const names = readdirSync('examples/photos/cat').map((name) => path.join('examples/photos/cat', name));
const photos = names.map((name) => readFileSync(name));

function trialShard(first: number, end: number): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  const entries = photos.slice(first, end).map((photo, i) => {
    const stored = deflateSync(photo);
    parts.push(stored);
    at += stored.length;
    const note = i % 2 === 0 ? `photo ${first + i}` : null;
    return {
      key: `${first + i}`,
      cls: i % 3,
      note,
      at: at - stored.length,
      stored: stored.length,
      bytes: photo.length,
    };
  });
  const directory = Buffer.from(JSON.stringify(entries));
  return Buffer.concat([...parts, directory, Buffer.from(String(directory.length).padStart(8, '0'))]);
}

let folder: string;
beforeAll(() => {
  folder = emptyFolder();
  const half = photos.length >> 1;
  writeFileSync(path.join(folder, '0.trial'), trialShard(0, half));
  writeFileSync(path.join(folder, '1.trial'), trialShard(half, photos.length));
});

async function everything() {
  const dataset = await openDataset(folder);
  const found: [key: string, cls: number, bytes: string][] = [];
  for await (const { key, label: cls, fields } of dataset.samples({ checksum: true })) {
    found.push([key, cls, Buffer.from(fields.jpg!).toString('base64')]);
  }
  const { format } = dataset;
  await dataset.close();
  return { format, found };
}

test('a layout of one folder and one line of code can be opened, decompressed and gives classes', async () => {
  const { format, found } = await everything();
  expect(format).toBe('trial');
  const half = photos.length >> 1;
  expect(found).toEqual(photos.map((photo, i) => [String(i), (i < half ? i : i - half) % 3, photo.toString('base64')]));
});

test('the loader decodes the images of the layout, and batches have its labels', async () => {
  await using dataset = await openDataset(folder);
  const loader = dataset.loader({ batchSize: 4, transform: 'train224', checksum: 'always', workers: 1, seed: 1 });
  const keys: string[] = [];
  for await (const batch of loader) for (let row = 0; row < batch.size; row++) keys.push(batch.keys[row]!);
  await loader.close();
  expect(keys.filter((key) => key !== '').sort()).toEqual(photos.map((_, i) => String(i)).sort());
});

test('index writes an index next to the shard, with its labels as columns', async () => {
  expect(await indexShards([folder])).toMatchObject({ shards: 2, samples: photos.length });
  expect(readdirSync(folder).sort()).toEqual(['0.parquet', '0.trial', '1.parquet', '1.trial']);
  await using dataset = await openDataset(folder);
  const { columns, width } = await dataset.files.index(0);
  expect(columns.get('note')!.slice(0, 3)).toEqual(['photo 0', null, 'photo 2']);
  expect(width.every((pixels) => pixels > 0)).toBe(true);
  expect((await everything()).found).toHaveLength(photos.length);
});
