import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { readManifest } from '@shardtool/format';
import { pack } from '@shardtool/writer';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { makeSparseDataset } from '../bench/sparse-dataset.mjs';
import { type BucketServer, defaultBucketServer } from './bucket-server.js';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { datasetDigestsOf, jpeg, newFolder, PNG } from './pack-workbench.js';

let server: BucketServer;

beforeAll(async () => {
  server = await defaultBucketServer();
});
afterAll(() => server.stop());
beforeEach(() => {
  server.objects.clear();
  server.asked.length = 0;
});

const TIME_MS = Date.parse('2026-11-01T02:03:04Z');

function fill(): void {
  const files = {
    'b/é b+c (1).jpg': jpeg('e'),
    'a/2.jpg': jpeg(2),
    'a/1.jpg': jpeg(1),
    'a/1.txt': 'one',
    'c/.hidden/4.jpg': PNG,
  };
  for (const [name, content] of Object.entries(files)) server.put(`raw/set/${name}`, content, TIME_MS);
  server.put('raw/other/9.jpg', jpeg(9), TIME_MS);
}

/** The objects of the bucket as a data file of S3 Inventory, in reverse order. */
function inventory(): string {
  const encoded = (key: string) => key.split('/').map(encodeURIComponent).join('/').replaceAll('%20', '+');
  return [...server.objects]
    .filter(([name]) => name.startsWith('raw/'))
    .reverse()
    .map(([name, { bytes, etag, modifiedMs }]) => {
      const time = new Date(modifiedMs).toISOString();
      return `"raw","${encoded(name.slice(4))}","${bytes.length}","${time}","${etag.replaceAll('"', '')}"\n`;
    })
    .join('');
}

function sourceLists(): number {
  return server.asked.filter(({ query }) => query.has('list-type') && (query.get('prefix') ?? '').startsWith('set/'))
    .length;
}

test('a pack with --manifest writes the same bytes as a pack that lists the bucket, and lists nothing', async () => {
  fill();
  const listed = newFolder();
  await pack('s3://raw/set', listed);
  expect(sourceLists()).toBeGreaterThan(0);
  const file = path.join(emptyFolder(), 'inventory.csv.gz');
  writeFileSync(file, gzipSync(inventory()));
  server.asked.length = 0;
  const packed = newFolder();
  await pack('s3://raw/set', packed, { manifest: file });
  expect(sourceLists()).toBe(0);
  expect(datasetDigestsOf(packed)).toEqual(datasetDigestsOf(listed));
});

test('a Parquet file of S3 Inventory is a manifest too, and its old versions and delete markers are skipped', async () => {
  fill();
  const listed = newFolder();
  await pack('s3://raw/set', listed);
  const objects = [...server.objects].filter(([name]) => name.startsWith('raw/'));
  const old = [objects[0]!, objects[1]!];
  const rows = [...old, ...objects];
  const isOld = (row: number) => row < old.length;
  const file = path.join(emptyFolder(), 'inventory.parquet');
  const columnData = [
    { name: 'bucket', data: rows.map(() => 'raw'), type: 'STRING' as const },
    { name: 'key', data: rows.map(([name]) => name.slice(4)), type: 'STRING' as const },
    { name: 'is_latest', data: rows.map((_, row) => !isOld(row)), type: 'BOOLEAN' as const },
    { name: 'is_delete_marker', data: rows.map((_, row) => row === 1), type: 'BOOLEAN' as const },
    {
      name: 'size',
      data: rows.map(([, { bytes }], row) => BigInt(isOld(row) ? 1 : bytes.length)),
      type: 'INT64' as const,
    },
    {
      name: 'last_modified_date',
      data: rows.map(([, { modifiedMs }]) => new Date(modifiedMs)),
      type: 'TIMESTAMP' as const,
    },
    { name: 'e_tag', data: rows.map(([, { etag }]) => etag), type: 'STRING' as const },
  ];
  writeFileSync(file, Buffer.from(parquetWriteBuffer({ columnData })));
  server.asked.length = 0;
  const packed = newFolder();
  await pack('s3://raw/set', packed, { manifest: file });
  expect(sourceLists()).toBe(0);
  expect(datasetDigestsOf(packed)).toEqual(datasetDigestsOf(listed));
});

test('an append with the manifest.json of an inventory in a bucket adds its new files, and applies changes', async () => {
  fill();
  const shards = newFolder();
  const put = () => {
    server.put('inventories/raw/all/data/1.csv.gz', gzipSync(inventory()));
    const manifest = { fileFormat: 'CSV', fileSchema: 'Bucket, Key, Size, LastModifiedDate, ETag' };
    const files = [{ key: 'raw/all/data/1.csv.gz' }];
    const destinationBucket = 'arn:aws:s3:::inventories';
    server.put('inventories/raw/all/2026/manifest.json', JSON.stringify({ ...manifest, destinationBucket, files }));
  };
  put();
  const options = { manifest: 's3://inventories/raw/all/2026/manifest.json' };
  await pack('s3://raw/set', shards, options);
  server.put('raw/set/a/3.jpg', jpeg(3), TIME_MS);
  server.objects.delete('raw/set/a/2.jpg');
  put();
  server.asked.length = 0;
  await pack('s3://raw/set', shards, { ...options, append: true, applyChanges: true });
  expect(sourceLists()).toBe(0);
  expect((await readManifest(shards)).samples).toBe(3);
  const { stdout } = await shardtool('ls', shards, '--samples');
  expect(
    stdout
      .split('\n')
      .map((line) => line.split('\t')[0])
      .sort(),
  ).toEqual(['', 'a/1', 'a/3', 'b/é b+c (1)']);
});

test('an object that has changed since the manifest was made is an error, or is quarantined', async () => {
  fill();
  const file = path.join(emptyFolder(), 'inventory.csv');
  writeFileSync(file, inventory());
  server.put('raw/set/a/2.jpg', jpeg('another'), TIME_MS + 5000);
  await expect(pack('s3://raw/set', newFolder(), { manifest: file })).rejects.toThrow('a/2.jpg');
  const shards = newFolder();
  const report = await pack('s3://raw/set', shards, { manifest: file, onBad: 'quarantine', maxBad: 1 });
  expect([report.samples, (await readManifest(shards)).samples]).toEqual([2, 2]);
});

test('of two rows with one key the newer one is used, also with patterns', async () => {
  fill();
  const file = path.join(emptyFolder(), 'list.csv');
  const rows = [`set/a/1.jpg,${jpeg(1).length},2026-11-01T02:03:04Z`, 'set/a/1.jpg,7,2020-01-01T00:00:00Z'];
  for (const text of [rows, rows.toReversed()]) {
    writeFileSync(file, `key,size,last_modified\n${text.join('\n')}\n`);
    for (const include of [undefined, ['a/*.jpg']]) {
      expect(await pack('s3://raw/set', newFolder(), { manifest: file, include })).toMatchObject({ samples: 1 });
    }
  }
});

test('samples of objects that a manifest does not list are kept as long as the objects exist', async () => {
  fill();
  const shards = newFolder();
  const file = path.join(emptyFolder(), 'inventory.csv');
  writeFileSync(file, inventory());
  server.put('raw/set/a/3.jpg', jpeg(3), TIME_MS);
  await pack('s3://raw/set', shards);
  server.objects.delete('raw/set/a/2.jpg');
  writeFileSync(file, inventory().replace(/^.*a\/[13]\.jpg.*\n/gm, ''));
  const options = { manifest: file, append: true };
  const listed = await pack('s3://raw/set', shards, options);
  expect(listed.changes).toMatchObject({ gone: 1, first: 'a/2.jpg' });
  await pack('s3://raw/set', shards, { ...options, applyChanges: true });
  const { stdout } = await shardtool('ls', shards, '--samples');
  const keys = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t')[0]);
  expect(keys.sort()).toEqual(['a/1', 'a/3', 'b/é b+c (1)']);
});

test('--manifest requires a bucket, excludes --files, and names a list of files', async () => {
  fill();
  const folder = emptyFolder();
  const file = path.join(folder, 'list.csv');
  writeFileSync(file, 'key,length\nset/a/1.jpg,3\n');
  mkdirSync(path.join(folder, 'photos'));
  writeFileSync(path.join(folder, 'photos', '1.jpg'), jpeg(1));
  const local = await shardtool('pack', path.join(folder, 'photos'), newFolder(), '--manifest', file);
  expect([local.code, local.stderr]).toEqual([2, expect.stringContaining('is a folder: use --files')]);
  const both = await shardtool('pack', 's3://raw/set', newFolder(), '--manifest', file, '--files', file);
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('Set either --files or --manifest')]);
  const wrong = await shardtool('pack', 's3://raw/set', newFolder(), '--manifest', file);
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    expect.stringContaining('no column "size"; it must have key and size'),
  ]);
  rmSync(file);
  const missing = await shardtool('pack', 's3://raw/set', newFolder(), '--manifest', file);
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('list.csv cannot be read')]);
});

test('an append with a list of new files to a large dataset does not look up the packed files, and does not report them as missing', async () => {
  const shards = emptyFolder();
  await makeSparseDataset(shards, { samples: 120_000, shardSamples: 60_000 });
  writeFileSync(
    path.join(shards, 'pack.json'),
    JSON.stringify({ version: 1, format: 'tar', shards: ['000000', '000001'], otherIndexes: [], options: {} }),
  );
  server.put('raw/set/new/1.jpg', jpeg(1), TIME_MS);
  const file = path.join(emptyFolder(), 'day.csv');
  writeFileSync(file, `key,size\nset/new/1.jpg,${jpeg(1).length}\n`);
  const { changes } = await pack('s3://raw/set', shards, { manifest: file, append: true, workers: 1 });
  expect(changes).toBeUndefined();
  expect((await readManifest(shards)).samples).toBe(120_001);
  expect(new Set(server.asked.map(({ key }) => key))).toEqual(new Set(['set/new/1.jpg']));
});
