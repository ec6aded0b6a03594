/** The output of commands for datasets of other software: what is there, what is unknown, what to do. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { convert, indexShards, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { newFolder } from './pack-workbench.js';
import { archive, entry } from './tar-craft.js';

const fixture = (name: string) => path.join('test/fixtures', name);

/** A folder with MDS shards, a Parquet file and an image. */
function threeReadings(): string {
  const folder = path.join(emptyFolder(), 'place');
  cpSync(fixture('mds/photos'), folder, { recursive: true });
  cpSync(fixture('parquet/hub/data/train-00000-of-00002.parquet'), path.join(folder, 'train-00000-of-00002.parquet'));
  cpSync(fixture('lists/photos/a/1.png'), path.join(folder, 'a/1.png'));
  return folder;
}

test('ls prints as what a location was opened, what other formats are there, and how to choose them', async () => {
  const place = threeReadings();
  expect((await shardtool('ls', place)).stdout).toContain(
    'This location also has shards of other formats: --layout parquet or --layout folder reads them.',
  );
  for (const layout of ['parquet', 'folder'] as const) {
    await using dataset = await openDataset(place, { layout });
    expect([dataset.format, dataset.size]).toEqual([layout, layout === 'parquet' ? 10 : 1]);
  }
});

test('ls does not claim that there are no classes if labels have not been read yet, and stats counts them', async () => {
  const place = fixture('arrays/mnist');
  expect((await shardtool('ls', place)).stdout).toContain(
    `no class names (shardtool stats ${place} counts the classes), fields npy`,
  );
  const { stdout } = await shardtool('stats', place);
  expect(stdout).toContain('6 classes, the smallest 9 with 1');
  expect(stdout).toContain('no field is an image file, so there are no widths and heights');
});

test('ls does not claim that there are no classes if they have numbers but no names', async () => {
  const shards = path.join(emptyFolder(), 'shards');
  await convert(fixture('arrays/mnist'), shards);
  expect((await shardtool('ls', shards)).stdout).toContain(
    `no class names (shardtool stats ${shards} counts the classes), fields cls, npy`,
  );
  expect((await shardtool('stats', shards)).stdout).toContain('6 classes, the smallest 9 with 1');
});

test('stats says how to make the sizes of images known, and prints them afterwards', async () => {
  const place = path.join(emptyFolder(), 'photos');
  cpSync(fixture('litdata/photos'), place, { recursive: true });
  expect((await shardtool('stats', place)).stdout).toContain(
    `unknown until "shardtool index ${place}" reads the image headers`,
  );
  await indexShards([place]);
  expect((await shardtool('stats', place)).stdout).toContain('width: 24 each');
});

test.each([
  'mds/photos',
  'tfrecord/photos',
  'parquet/hub',
  'zip/several',
  'zip/deflated.zip',
  'arrays/cifar10',
  'arrays/mnist',
  'hdf5/bytes.h5',
  'litdata/photos',
])('%s can be indexed, and verified against the index', async (name) => {
  const place = path.join(emptyFolder(), path.basename(name));
  cpSync(fixture(name), place, { recursive: true });
  const { samples } = await indexShards([place]);
  expect(samples).toBeGreaterThan(0);
  expect(await verify(place, { workers: 1 })).toMatchObject({ samples, faults: 0, checksums: true });
});

test.each([
  ['mds/compressed', 1],
  ['litdata/compressed', 3],
])('for %s, whose samples cannot be read individually, index and verify refer to convert', async (name, shards) => {
  await expect(indexShards([fixture(name)])).rejects.toThrow('Convert it with "shardtool convert"');
  const reasons: string[] = [];
  await verify(fixture(name), { workers: 1, onFault: ({ reason }) => reasons.push(reason) });
  expect(reasons).toHaveLength(shards);
  for (const reason of reasons) expect(reason).toContain('Convert it with "shardtool convert"');
});

test('files of a tar that belong to no sample are counted equally by all commands', async () => {
  const jpeg = readFileSync('test/fixtures/odd-images/one-pixel.jpg');
  const tar = path.join(emptyFolder(), 'odd.tar');
  writeFileSync(
    tar,
    archive(
      entry({ name: 'a.jpg' }, jpeg),
      entry({ name: 'README' }, 'x'),
      entry({ name: '.hidden' }, 'x'),
      entry({ name: 'b.jpg' }, jpeg),
    ),
  );
  const line = '  2 files belong to no sample and were skipped\n';
  const commands = [
    ['ls', tar],
    ['verify', tar],
    ['unpack', tar, newFolder()],
    ['convert', tar, newFolder()],
  ];
  for (const words of commands) expect((await shardtool(...words)).stdout).toContain(line);
  expect(JSON.parse((await shardtool('ls', tar, '--json')).stdout)).toMatchObject({ samples: 2, skippedEntries: 2 });
  expect(await verify(tar)).toMatchObject({ samples: 2, faults: 0, skippedEntries: 2 });
  expect(await indexShards([tar])).toMatchObject({ skippedEntries: 2 });
  // With an existing index, only verify scans the shard.
  expect(await verify(tar)).toMatchObject({ samples: 2, faults: 0, skippedEntries: 2 });
});
