import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { type InventoryEntry, readInventory } from './inventory.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-inventory-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function read(file: string, content: string | Uint8Array, root = 's3://photos/2026/'): Promise<InventoryEntry[]> {
  writeFileSync(join(folder, file), content);
  return collect(join(folder, file), root);
}

async function collect(location: string, root = 's3://photos/2026/'): Promise<InventoryEntry[]> {
  const entries: InventoryEntry[] = [];
  for await (const entry of readInventory(location, root, undefined)) entries.push(entry);
  return entries;
}

const TIME = '2026-11-01T02:03:04.000Z';
const INVENTORY = [
  `"photos","2026/a%2Bb/c+d%20e.jpg","12","${TIME}","0123456789abcdef0123456789abcdef"`,
  `"photos","2025/old.jpg","1","${TIME}","0"`,
  `"photos","2026/","0","${TIME}","0"`,
  `"other","2026/x.jpg","1","${TIME}","0"`,
  `"photos","2026/%C3%A4.jpg","0","${TIME}","0"`,
].join('\n');
const FOUND = [
  { name: 'a+b/c d e.jpg', size: 12, modifiedMs: Date.parse(TIME) },
  { name: 'ä.jpg', size: 0, modifiedMs: Date.parse(TIME) },
];

test('a data file of S3 Inventory has no header and encoded keys, and only the keys of the source count', async () => {
  expect(await read('inventory.csv', INVENTORY)).toEqual(FOUND);
  expect(await read('inventory.csv.gz', gzipSync(INVENTORY))).toEqual(FOUND);
  expect(await read('windows.csv', INVENTORY.replaceAll('\n', '\r\n'))).toEqual(FOUND);
});

test('a manifest.json names the columns and the data files, which are next to it or in a folder "data"', async () => {
  const manifest = {
    ...{ sourceBucket: 'photos', destinationBucket: 'arn:aws:s3:::inventories', fileFormat: 'CSV' },
    fileSchema: 'Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate',
    files: [{ key: 'photos/all/data/one.csv.gz' }, { key: 'photos/all/data/two.csv.gz' }],
  };
  mkdirSync(join(folder, 'data'));
  const row = (key: string, latest: boolean, deleted: boolean, size: string) =>
    `"photos","2026/${key}","v","${latest}","${deleted}","${size}","${TIME}"\n`;
  const one = row('a.jpg', true, false, '5') + row('a.jpg', false, false, '4') + row('b.jpg', true, true, '');
  writeFileSync(join(folder, 'data', 'one.csv.gz'), gzipSync(one));
  writeFileSync(join(folder, 'two.csv.gz'), gzipSync(row('c.jpg', true, false, '6')));
  const found = await read('manifest.json', JSON.stringify(manifest));
  expect(found.map(({ name, size }) => [name, size])).toEqual([
    ['a.jpg', 5],
    ['c.jpg', 6],
  ]);
  rmSync(join(folder, 'two.csv.gz'));
  await expect(collect(join(folder, 'manifest.json'))).rejects.toThrow(
    'two.csv.gz, which is not next to it: download it',
  );
});

test('of a data file of S3 Inventory with all versions only the latest are packed, also without its manifest', async () => {
  const row = (key: string, latest: boolean, deleted: boolean, size: string) =>
    `"photos","2026/${key}","123","${latest}","${deleted}","${size}","${TIME}","0123456789abcdef0123456789abcdef"`;
  const gone = row('gone.jpg', true, true, '');
  const rows = [
    ...[gone, row('gone.jpg', false, false, '3'), row('a.jpg', false, false, '4'), row('a.jpg', true, false, '5')],
    ...[row('b.jpg', true, false, '6'), row('b.jpg', false, true, '')],
  ];
  const expected = [
    { name: 'a.jpg', size: 5, modifiedMs: Date.parse(TIME) },
    { name: 'b.jpg', size: 6, modifiedMs: Date.parse(TIME) },
  ];
  expect(await read('versions.csv', rows.join('\n'))).toEqual(expected);
  expect(await read('reversed.csv', rows.toReversed().join('\n'))).toEqual(expected.toReversed());
  expect(await read('none.csv', `${gone}\n`)).toEqual([]);
});

test('a table with a header has plain keys, in any order of columns', async () => {
  const text = `ETag,Last-Modified,KEY,size\nx,${TIME},2026/a%20+.jpg,7\ny,,"2026/with, comma.jpg",8\n`;
  expect(await read('table.csv', text)).toEqual([
    { name: 'a%20+.jpg', size: 7, modifiedMs: Date.parse(TIME) },
    { name: 'with, comma.jpg', size: 8, modifiedMs: undefined },
  ]);
});

test('a row that is truncated, has an unquoted comma or an unclear flag throws an error', async () => {
  const header = 'key,size,is_latest\n2026/a.jpg,1,true\n';
  const of = (row: string) => read('rows.csv', header + row);
  await expect(of('2026/b.jpg,2')).rejects.toThrow(
    `Row 3 of ${join(folder, 'rows.csv')} has the wrong number of values: 2 for 3 columns.`,
  );
  await expect(read('comma.csv', 'size,key\n1,2026/a.jpg\n1,2026/b.jpg,c.jpg\n')).rejects.toThrow('3 for 2 columns');
  await expect(of('2026/b.jpg,2,1')).rejects.toThrow('"1" in the column "isLatest", which must be true or false');
  expect((await of('2026/b.jpg,2,FALSE\n2026/c.jpg,3,\n')).map(({ name }) => name)).toEqual(['a.jpg', 'c.jpg']);
  await expect(read('hex.csv', 'key,size\n2026/a.jpg,0x10\n')).rejects.toThrow('has the size "0x10"');
});

test('a list in another format throws an error that names the file, the row and the remedy', async () => {
  await expect(read('no-size.csv', 'key,length\na,1\n')).rejects.toThrow(
    'no-size.csv has the columns key, length, but no column "size"; it must have key and size.',
  );
  await expect(read('no-number.csv', 'key,size\n2026/a,big\n')).rejects.toThrow(
    `Row 2 of ${join(folder, 'no-number.csv')} has the size "big", which is not a number of bytes.`,
  );
  await expect(read('empty-size.csv', 'key,size\n2026/a,\n')).rejects.toThrow('has the size ""');
  await expect(read('time.csv', 'key,size,mtime\n2026/a,1,yesterday\n')).rejects.toThrow(
    'which is not a date and time',
  );
  await expect(read('quote.csv', 'key,size\n"2026/a,1\n')).rejects.toThrow('Line 2 of');
  await expect(read('percent.csv', '"photos","2026/100%.jpg","1"\n')).rejects.toThrow('write a header into the file');
  await expect(read('other.json', '{"files": 3}')).rejects.toThrow('is not the manifest.json of an S3 Inventory');
  await expect(read('orc.json', '{"fileFormat": "ORC", "files": []}')).rejects.toThrow('choose CSV or Parquet');
  await expect(read('cut.csv.gz', gzipSync(INVENTORY).subarray(0, 60))).rejects.toThrow('cut.csv.gz cannot be read');
  await expect(collect(join(folder, 'missing.csv'))).rejects.toThrow('missing.csv cannot be read');
});
