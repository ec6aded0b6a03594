/** `shardtool/web` against the reader of Node: the bundle for browsers, in Node, which has fetch as well. */
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset as openHere, type Sample, splitDataset } from '@shardtool/reader';
import { convert, pack } from '@shardtool/writer';
import { openDataset, type WebDataset, type WebRow } from 'shardtool/web';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { emptyFolder, packedPhotos } from './datasets.js';
import { type FaultyServer, faultyServer } from './faulty-server.js';

const root = emptyFolder();
let server: FaultyServer;

beforeAll(async () => {
  server = await faultyServer(root);
  cpSync(await packedPhotos(), path.join(root, 'tar'), { recursive: true });
  cpSync(await packedPhotos({ format: 'msgpack' }), path.join(root, 'msgpack'), { recursive: true });
  await convert(path.join(root, 'tar'), path.join(root, 'parquet'), { format: 'parquet' });
  cpSync(await packedPhotos({ format: 'lmdb' }), path.join(root, 'lmdb'), { recursive: true });
});
afterAll(() => server.stop());

async function open(name: string, options = {}): Promise<WebDataset> {
  server.clear();
  server.fault = () => undefined;
  return openDataset(`${server.url}/${name}`, options);
}

const LIB = 'packages/cli/lib/web';

test('the bundle imports no module of Node, and only its own parts', () => {
  const files = readdirSync(LIB);
  let bytes = 0;
  for (const file of files) {
    const text = readFileSync(path.join(LIB, file), 'utf8');
    bytes += text.length;
    const imported = [...text.matchAll(/(?:\bfrom|\bimport|\bimport\s*\()\s*[`"']([^`"'\s{}]+)[`"']/g)].map(
      ([, name]) => name!,
    );
    expect(imported.filter((name) => !files.includes(name.replace('./', '')))).toEqual([]);
    expect(text).not.toMatch(/["'`]node:/);
  }
  expect(bytes).toBeLessThan(600_000);
});

test.each(['tar', 'msgpack', 'parquet'])('a dataset of %s has the same samples as in Node', async (name) => {
  const dataset = await open(name);
  const here = await openHere(path.join(root, name));
  expect(dataset.size).toBe(60);
  expect({ ...summary(dataset), location: '' }).toEqual({ ...summary(here), location: '' });
  for await (const sample of here.samples({ checksum: true })) {
    expect(plain(await dataset.get(sample.index))).toEqual(plain(sample));
  }
  const keys: string[] = [];
  for await (const row of dataset.rows({ from: 7, to: 23 })) {
    keys.push(row.key);
    const sample = await here.get(row.index);
    expect(row).toMatchObject({ key: sample.key, label: sample.label, className: here.classes[sample.label] });
    expect(row.width).toBeGreaterThan(0);
  }
  expect(keys).toHaveLength(16);
  expect((await dataset.get(keys[3]!)).index).toBe(10);
  await expect(dataset.get(60)).rejects.toThrow(/has no sample with the index 60: it has 60 samples/);
  await expect(dataset.get('unknown')).rejects.toThrow(/has no sample with the key "unknown"/);
  await dataset.close();
});

/** A sample with its fields as text, which compares a thousand times faster than bytes; without the path of its source. */
function plain({ fields, source: _, ...others }: Sample) {
  return {
    ...others,
    fields: Object.entries(fields).map(([name, bytes]) => [name, Buffer.from(bytes).toString('latin1')]),
  };
}

const SHARED = ['format', 'identity', 'classes', 'classSamples', 'fields', 'size', 'bytes'] as const;

function summary({
  format,
  identity,
  classes,
  classSamples,
  fields,
  size,
  bytes,
}: Pick<WebDataset, (typeof SHARED)[number]>) {
  return { format, identity, classes, classSamples, fields, size, bytes };
}

test('an expression selects the rows that match, and fetches the columns that it names', async () => {
  const dataset = await open('tar');
  const rows: WebRow[] = [];
  for await (const row of dataset.rows()) rows.push(row);
  const matching = (matches: (row: WebRow) => boolean) => rows.filter(matches).map(({ index }) => index);
  expect([...(await dataset.where('class = "cat" and width > height'))]).toEqual(
    matching(({ className, width, height }) => className === 'cat' && width > height),
  );
  expect([...(await dataset.where('bytes < 20000 or key = "cat/01"'))]).toEqual(
    matching(({ bytes, key }) => bytes < 20_000 || key === 'cat/01'),
  );
  expect([...(await dataset.where('orientation = 1'))].length).toBeGreaterThan(0);
  await expect(dataset.where('width > 10 and heigth < 5')).rejects.toThrow(/there is no column "heigth"/);
  await expect(dataset.where('class = "caat"')).rejects.toThrow(/there is no class "caat"; did you mean "cat"/);
});

test('label columns have their types and values', async () => {
  const folder = emptyFolder();
  const list = readdirSync('examples/photos/cat').slice(0, 6);
  const csv = ['path,number,tag,constructor', ...list.map((file, k) => `${file},${k},tag${k % 2},${k}`)].join('\n');
  writeFileSync(path.join(folder, 'labels.csv'), csv);
  for (const file of list) cpSync(`examples/photos/cat/${file}`, path.join(folder, 'images', file));
  await pack(path.join(folder, 'images'), path.join(root, 'labelled'), { labels: path.join(folder, 'labels.csv') });
  const dataset = await open('labelled');
  expect([...(await dataset.columns())]).toEqual([
    ['number', 'int'],
    ['tag', 'string'],
    ['constructor', 'int'],
  ]);
  // Every plain object of JavaScript has a property of this name.
  expect([...(await dataset.where('constructor >= 4'))]).toHaveLength(2);
  const found = await dataset.where('tag = "tag1" and number > 1');
  const numbers = await Promise.all([...found].map(async (index) => (await dataset.row(index)).columns.number));
  expect(numbers.toSorted()).toEqual([3, 5]);
});

test('splits of an overlay and excluded keys apply as in Node', async () => {
  cpSync(path.join(root, 'tar'), path.join(root, 'split'), { recursive: true });
  await splitDataset(path.join(root, 'split'), { shares: new Map([['val', 0.2]]) });
  const here = await openHere(path.join(root, 'split'), { split: 'val' });
  const dataset = await open('split', { split: 'val' });
  expect(dataset.size).toBe(here.size);
  for (let index = 0; index < here.size; index++) {
    const expected = await here.get(index);
    expect((await dataset.get(index)).key).toBe(expected.key);
  }
  const { key } = await here.get(0);
  expect((await open('split', { split: 'val', excludeKeys: [key] })).size).toBe(here.size - 1);
});

test('shards without an index can be read as well: one, a pattern, a list', async () => {
  for (const [k, name] of ['000000.tar', '000001.tar'].entries()) {
    cpSync(path.join(root, 'tar', name), path.join(root, 'plain', `a-00000${k}.tar`));
  }
  expect((await open('plain/a-000000.tar')).size).toBe(10);
  expect((await open('plain/a-{000000..000001}.tar')).size).toBe(20);
  const both = [`${server.url}/plain/a-000001.tar`, new URL(`${server.url}/plain/a-000000.tar`)];
  const dataset = await openDataset(both);
  const here = await openHere(path.join(root, 'tar'));
  expect(plain(await dataset.get(0)).fields).toEqual(plain(await here.get(10)).fields);
});

test('the error for a location that cannot be opened contains a remedy', async () => {
  await expect(open('nothing')).rejects.toThrow(/nothing has no dataset\.json/);
  await expect(openDataset('s3://bucket/shards')).rejects.toThrow(
    /^s3:\/\/bucket\/shards cannot be opened in a browser: give a URL that begins with https:/,
  );
  await expect(openDataset('shards')).rejects.toThrow(/shards cannot be opened in a browser/);
  await expect(openDataset('')).rejects.toThrow(/An empty text cannot be opened/);
  await expect(open('tar', { workers: 3 })).rejects.toThrow(/workers/);
  await expect(open('lmdb')).rejects.toThrow(
    /Browsers read shards of the layouts msgpack, parquet, tar, and these have/,
  );
});

test('data that was corrupted in transit is fetched again, and damage on the server is an error', async () => {
  const dataset = await open('tar');
  let flips = 0;
  server.fault = ({ url, before }) =>
    url.endsWith('000003.tar') && before === 0 && flips++ === 0 ? 'flipped byte' : undefined;
  await dataset.get(35);
  expect(flips).toBeGreaterThan(0);
  cpSync(path.join(root, 'tar'), path.join(root, 'damaged'), { recursive: true });
  const file = path.join(root, 'damaged', '000000.tar');
  const bytes = readFileSync(file);
  bytes[3000]! ^= 1;
  writeFileSync(file, bytes);
  await expect((await open('damaged')).get(0)).rejects.toThrow(/has changed since it was packed/);
  expect((await (await open('damaged')).get(0, { checksum: false })).index).toBe(0);
  const index = path.join(root, 'damaged', '000001.parquet');
  const changed = readFileSync(index);
  changed[40]! ^= 1;
  writeFileSync(index, changed);
  await expect((await open('damaged')).row(10)).rejects.toThrow(/000001\.parquet/);
});

test('a shard that is replaced while it is read is an error, and so is a server that ignores ranges', async () => {
  cpSync(path.join(root, 'tar'), path.join(root, 'replaced'), { recursive: true });
  const dataset = await open('replaced');
  await dataset.get(0);
  const file = path.join(root, 'replaced', '000000.tar');
  const bytes = readFileSync(file);
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(file, bytes);
  await expect(dataset.get(1)).rejects.toThrow(/has changed: it has been replaced since it was first read/);
  const other = await open('tar');
  server.fault = ({ url }) => (url.endsWith('.tar') ? 'ignored range' : undefined);
  await expect(other.get(0)).rejects.toThrow(/its server ignores range requests/);
});

test('a call ends when it is aborted, and calls of a closed dataset report that it is closed', async () => {
  const dataset = await open('tar');
  const stop = new AbortController();
  stop.abort(new Error('enough'));
  await expect(dataset.get(0, { signal: stop.signal })).rejects.toThrow('enough');
  await expect(dataset.where('bytes > 0', { signal: stop.signal })).rejects.toThrow('enough');
  await expect(openDataset(`${server.url}/tar`, { signal: stop.signal })).rejects.toThrow('enough');
  await dataset.close();
  await expect(dataset.get(0)).rejects.toThrow(/was closed/);
});
