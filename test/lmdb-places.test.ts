import { closeSync, copyFileSync, mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { lmdbImages } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { convert, pack, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { JPEG, PNG } from './pack-workbench.js';

/** Writes a database with these values at a path. */
function database(file: string, values: Readonly<Record<string, Uint8Array>>): string {
  mkdirSync(path.dirname(file), { recursive: true });
  const fd = openSync(file, 'wx');
  const writer = lmdbImages.createWriter(fd, file);
  for (const [key, value] of Object.entries(values)) {
    writer.begin(key, [{ name: 'bin', bytes: value.length }])[0]!.set(value);
    writer.commit();
  }
  writer.finish();
  closeSync(fd);
  return file;
}

const IMAGES = { a: JPEG, b: PNG };

async function keysOf(place: string, options = {}): Promise<string[]> {
  await using dataset = await openDataset(place, options);
  expect(dataset.format).toBe('lmdb');
  const keys: string[] = [];
  for await (const { key } of dataset.samples()) keys.push(key);
  return keys;
}

test('a database is recognised by its content, as a folder of any name, as the file in it, and as a single file', async () => {
  const folder = emptyFolder();
  const places = [
    path.dirname(database(path.join(folder, 'lsun/bedroom_train_lmdb/data.mdb'), IMAGES)),
    path.join(folder, 'lsun/bedroom_train_lmdb/data.mdb'),
    database(path.join(folder, 'single.lmdb'), IMAGES),
    database(path.join(folder, 'single.mdb'), IMAGES),
    database(path.join(folder, 'without-an-extension'), IMAGES),
  ];
  writeFileSync(path.join(folder, 'lsun/bedroom_train_lmdb/lock.mdb'), '');
  for (const place of places) {
    expect(await keysOf(place), place).toEqual(['a', 'b']);
    expect(await keysOf(place, { layout: 'lmdb' }), place).toEqual(['a', 'b']);
    expect(await verify(place, { workers: 1 }), place).toMatchObject({ samples: 2, faults: 0 });
  }
  const output = path.join(folder, 'tars');
  await convert(places[1]!, output, { workers: 1 });
  await using converted = await openDataset(output);
  expect(converted.shards.map(({ name }) => name)).toEqual(['bedroom_train_lmdb.tar']);
});

test('a folder of single files opens as a dataset, and an invalid file with the name of a database is reported', async () => {
  const folder = emptyFolder();
  for (const [name, key] of ['x', 'y'].entries()) database(path.join(folder, `${name}.lmdb`), { [key]: PNG });
  expect(await keysOf(folder)).toEqual(['x', 'y']);
  const none = path.join(emptyFolder(), 'none_lmdb');
  mkdirSync(none, { recursive: true });
  writeFileSync(path.join(none, 'data.mdb'), 'a database of Access');
  await expect(openDataset(none)).rejects.toThrow('has no dataset.json');
  await expect(openDataset(none, { layout: 'lmdb' })).rejects.toThrow('too few for an LMDB database');
});

test('for a folder with several databases, the folder of one, or a split, must be given', async () => {
  const folder = emptyFolder();
  for (const name of ['bedroom_train_lmdb', 'bedroom_val_lmdb']) database(path.join(folder, name, 'data.mdb'), IMAGES);
  expect(await keysOf(folder, { split: 'bedroom_val_lmdb' })).toEqual(['a', 'b']);
  await expect(openDataset(folder)).rejects.toThrow(
    'contains several datasets (bedroom_train_lmdb, bedroom_val_lmdb): give the folder of one of them',
  );
  const others = emptyFolder();
  for (const name of ['church', 'tower']) database(path.join(others, name, 'data.mdb'), IMAGES);
  await expect(openDataset(others)).rejects.toThrow(
    'contains several datasets (church, tower): give the folder of one of them',
  );
  renameSync(path.join(others, 'church'), path.join(others, 'tower/church'));
  await expect(openDataset(others)).rejects.toThrow('contains a dataset (tower): give the folder of that dataset');
});

test('a folder of files with unknown names opens with the option layout, which the error suggests', async () => {
  const folder = emptyFolder();
  for (const key of ['x', 'y']) database(path.join(folder, `part-${key}`), { [key]: PNG });
  writeFileSync(path.join(folder, 'notes'), 'of someone');
  await expect(openDataset(folder)).rejects.toThrow(
    'but part-x begins like a shard of layout lmdb. To read it, set layout: "lmdb".',
  );
  expect(await keysOf(folder, { layout: 'lmdb' })).toEqual(['x', 'y']);
});

test('a single shard opens by its folder and by its file', async () => {
  const output = path.join(emptyFolder(), 'shards');
  await pack('examples/photos', output, { format: 'lmdb', workers: 1 });
  const all = await keysOf(path.join(output, '000000.lmdb'));
  expect(all).toHaveLength(60);
  expect(await keysOf(path.join(output, '000000.lmdb/data.mdb'))).toEqual(all);
  copyFileSync(path.join(output, '000000.lmdb/data.mdb'), path.join(output, '../copy'));
  // Without the index, in the order of the keys.
  expect(await keysOf(path.join(output, '../copy'))).toEqual(all.sort());
});

/** Values that other software stores in such databases. */
const varint = (value: number) => (value < 128 ? [value] : [(value & 127) | 128, value >> 7]);
const DATUM = Buffer.from([8, 3, 16, ...varint(200), 24, 10, 0x22, ...varint(6000), ...new Array(6000).fill(7), 40, 1]);

test.each([
  [
    'Datums of Caffe with pixels',
    DATUM,
    'is a Datum of Caffe with raw pixels, which cannot be read in place: convert the database',
  ],
  [
    'lists pickled by an older Python',
    Buffer.from('\x80\x02]q\x00(K\x01K\x02e.', 'latin1'),
    'is a pickled Python object, and reading it would mean running',
  ],
  [
    'pickled objects',
    Buffer.from('\x80\x04\x95\x0a\0\0\0\0\0\0\0C\x06pixelsq.', 'latin1'),
    'is a pickled Python object, and reading it would mean running',
  ],
])('a database of %s is rejected with an error that names them', async (_, value, sentence) => {
  const place = path.dirname(database(path.join(emptyFolder(), 'foreign/data.mdb'), { '00000000': value }));
  await expect(openDataset(place)).rejects.toThrow(`the value of the key "00000000" ${sentence}`);
  const { code, stderr } = await shardtool('ls', place);
  expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)]);
});

test("a value of an unknown kind is read as bytes, even if it starts like other software's values", async () => {
  const values = {
    a: Buffer.from([0x22, 5, 1, 2]),
    b: Buffer.from([8, 3]),
    c: Buffer.from([0x80]),
    e: Buffer.from([0x80, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    f: Buffer.from([0x22, 3, 1, 2, 3]),
    d: Buffer.from([0x80, 9]),
  };
  const place = path.dirname(database(path.join(emptyFolder(), 'bytes/data.mdb'), values));
  await using dataset = await openDataset(place);
  expect(dataset.fields).toEqual(['bin']);
});
