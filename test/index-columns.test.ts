import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { addOverlay, openDataset } from '@shardtool/reader';
import { convert, indexShards, pack, readPackedLabels, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { digestsOf, JPEG, jpeg, newFolder, samplesOf, tree } from './pack-workbench.js';

/** Keys of a loader for which an expression is true. */
async function chosen(location: string, where: string): Promise<string[]> {
  await using dataset = await openDataset(location);
  const keys: string[] = [];
  for await (const batch of dataset.loader({ transform: 'raw', shuffle: false, fields: [], where, workers: 1 }))
    keys.push(...batch.keys);
  return keys;
}

const files = {
  'a.json': '{"width": 10, "size": {"of": [1, 2]}, "note": "x", "mixed": 1}',
  'b.json': '{"width": 20.5, "mixed": "two", "__proto__": 1}',
  'c.json': 'no JSON',
  'd.json': '{"width": null, "note": true}',
};
const images = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((key) => [`${key}.jpg`, JPEG]));

test.each(['tar', 'msgpack', 'lmdb'] as const)(
  'values inside JSON fields become columns of a packed %s',
  async (format) => {
    const output = newFolder();
    await pack(tree({ ...files, ...images }), output, { workers: 1, format, shuffle: false, maxShardSamples: 1 });
    const shards = digestsOf(output);
    await expect(chosen(output, 'json.width > 15')).rejects.toThrow(
      '"shardtool index FOLDER --columns json.width" makes it one',
    );
    const columns = ['json.width', 'json.size', 'json.size.of.1', 'json.mixed', 'json.note', 'json.__proto__'];
    expect((await indexShards([output], { columns })).columns).toEqual({
      columns: [
        { name: 'json.width', type: 'double' },
        { name: 'json.size', type: 'string' },
        { name: 'json.size.of.1', type: 'int' },
        { name: 'json.mixed', type: 'string' },
        { name: 'json.note', type: 'string' },
        { name: 'json.__proto__', type: 'int' },
      ],
      unreadable: 1,
      unlabelled: 0,
    });
    expect(await chosen(output, 'json.width > 15')).toEqual(['b']);
    expect(await chosen(output, 'json.width <= 15 or json.note = "true"')).toEqual(['a', 'd']);
    expect(await chosen(output, 'json.mixed in ("1", "two")')).toEqual(['a', 'b']);
    expect(await chosen(output, `json.size = '{"of":[1,2]}' and json.size.of.1 = 2`)).toEqual(['a']);
    expect(await chosen(output, 'json.width = null')).toEqual(['c', 'd', 'e']);
    expect(await verify(output, { workers: 1 })).toMatchObject({ faults: 0 });
    // Shards are unchanged, and so is everything on a second run.
    const after = digestsOf(output);
    for (const [name, digest] of Object.entries(shards))
      if (!/parquet|json$/.test(name)) expect(after[name]).toBe(digest);
    await indexShards([output], { columns });
    expect(digestsOf(output)).toEqual(after);
  },
);

test('integers beyond 2^53 inside JSON fields keep their digits', async () => {
  const output = newFolder();
  const json = '{"id": 9007199254740993, "ids": [9007199254740993]}';
  await pack(tree({ 'a.jpg': JPEG, 'a.json': json }), output, { workers: 1 });
  await indexShards([output], { columns: ['json.id', 'json.ids'] });
  expect(await chosen(output, 'json.id = "9007199254740993" and json.ids = "[9007199254740993]"')).toEqual(['a']);
});

test('an append keeps such columns, and indexing again fills them for the new samples', async () => {
  const source = tree({ ...files, ...images });
  const output = newFolder();
  await pack(source, output, { workers: 1 });
  await indexShards([output], { columns: ['json.width'] });
  cpSync(path.join(source, 'b.jpg'), path.join(source, 'z.jpg'));
  cpSync(path.join(source, 'b.json'), path.join(source, 'z.json'));
  expect(await pack(source, output, { workers: 1, append: true })).toMatchObject({ samples: 1 });
  await expect(chosen(output, 'json.width > 15')).rejects.toThrow('--columns json.width');
  await indexShards([output], { columns: ['json.width'] });
  expect((await chosen(output, 'json.width > 15')).sort()).toEqual(['b', 'z']);
  expect(await verify(output, { workers: 1 })).toMatchObject({ faults: 0 });
});

test('a column that cannot exist in any shard is rejected before anything is written', async () => {
  const output = newFolder();
  await pack(tree({ ...files, ...images }), output, { workers: 1 });
  const before = digestsOf(output);
  for (const [name, what] of [
    ['nothing.x', 'does not start with a field'],
    ['json', 'does not start with a field'],
    ['json.crc32', 'has the name of a column of the index'],
  ] as const) {
    await expect(indexShards([output], { columns: ['json.width', name] })).rejects.toThrow(what);
  }
  expect(digestsOf(output)).toEqual(before);
});

const FIXTURE = 'test/fixtures/img2dataset';

function img2dataset(): string {
  const folder = path.join(emptyFolder(), 'laion');
  cpSync(FIXTURE, folder, { recursive: true });
  return folder;
}

test("the columns of img2dataset's own Parquet files become label columns by key, and the files are kept", async () => {
  const folder = img2dataset();
  const { stdout } = await shardtool('index', folder, '--labels', folder, '--columns', 'json.original_width');
  expect(stdout).toMatch(
    /^Indexed \d+ samples in 2 shards\.\n {2}columns: .*similarity \(double\), caption \(string\)/,
  );
  for (const name of ['00000.parquet', '00001.parquet']) {
    expect(readFileSync(path.join(folder, name))).toEqual(readFileSync(path.join(FIXTURE, name)));
  }
  await using dataset = await openDataset(folder);
  for await (const { columns, fields } of dataset.samples()) {
    const said = JSON.parse(Buffer.from(fields.json!).toString());
    expect(columns).toMatchObject({
      caption: said.caption,
      url: said.url,
      similarity: said.similarity,
      width_: said.width,
    });
    expect(columns['json.original_width']).toBe(said.original_width);
  }
  const chosenKeys = await chosen(folder, 'similarity > 0.3 and json.original_width > 0');
  expect(chosenKeys.length).toBeGreaterThan(0);
  const converted = newFolder();
  await convert(folder, converted, { workers: 1, format: 'msgpack' });
  expect(await chosen(converted, 'similarity > 0.3 and json.original_width > 0')).toEqual(chosenKeys);
});

test('a single Parquet file labels an overlay, by its column of keys', async () => {
  const folder = img2dataset();
  await indexShards([folder]);
  const labels = await readPackedLabels(path.join(folder, '00000.parquet'));
  expect(labels.by).toBe('key');
  const there = new Set<string>();
  await using dataset = await openDataset(folder);
  for await (const { key } of dataset.samples()) there.add(key);
  // The list also names samples that could not be fetched.
  const missing = labels.id.find((key) => !there.has(key));
  if (missing !== undefined) await expect(addOverlay(folder, { name: 'more', labels })).rejects.toThrow(missing);
  await expect(readPackedLabels(path.join(FIXTURE, 'make.py'))).rejects.toMatchObject({ name: 'LabelsError' });
});

test('infinite numbers and nan in a table are stored in the index, in an overlay and in converted shards', async () => {
  const folder = tree({ 'a.jpg': jpeg(0), 'b.jpg': jpeg(1), 'c.jpg': jpeg(2) });
  const labels = path.join(tree({ 'labels.csv': 'path,v\na.jpg,inf\nb.jpg,nan\nc.jpg,0.5\n' }), 'labels.csv');
  const output = newFolder();
  await pack(folder, output, { labels, workers: 1, shuffle: false });
  const values = async (location: string) => (await samplesOf(location)).map(({ columns }) => columns.v);
  expect(await values(output)).toEqual([Number.POSITIVE_INFINITY, null, 0.5]);
  expect(await chosen(output, 'v > 1')).toEqual(['a']);
  expect((await shardtool('ls', output, '--samples', '--json')).stdout).toContain('{"v":1e999}');
  for (const format of ['parquet', 'tfrecord', 'mds', 'msgpack'] as const) {
    const converted = newFolder();
    await convert(output, converted, { format, workers: 1 });
    await using dataset = await openDataset(converted);
    const found: unknown[] = [];
    for await (const { columns } of dataset.samples()) found.push(columns.v);
    expect(found).toEqual([Number.POSITIVE_INFINITY, null, 0.5]);
  }
  writeFileSync(labels, 'key,v\na,1\nb,-inf\n');
  await addOverlay(output, { name: 'o', labels: await readPackedLabels(labels) });
  await using dataset = await openDataset(output, { overlay: 'o' });
  const found: unknown[] = [];
  for await (const { columns } of dataset.samples()) found.push(columns.v);
  expect(found).toEqual([1, Number.NEGATIVE_INFINITY, 0.5]);
});
