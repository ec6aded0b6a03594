import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { DamagedShardError, OptionError } from '@shardtool/base';
import { readManifest } from '@shardtool/format';
import { type Dataset, openDataset } from '@shardtool/reader';
import { convert, type Fault, indexShards, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';

/** Written by the Hub's `datasets` and by pyarrow: see make.py there. */
const fixtures = 'test/fixtures/parquet';
interface Expected {
  readonly sha256: string;
  readonly label: number;
  readonly caption: string | null;
}
const expected: readonly Expected[] = JSON.parse(readFileSync(path.join(fixtures, 'expected.json'), 'utf8'));
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

async function contents(dataset: Dataset): Promise<Expected[]> {
  const found: Expected[] = [];
  for await (const { label: cls, fields, columns } of dataset.samples({ checksum: true })) {
    found.push({
      sha256: sha256(fields.jpg ?? fields.png!),
      label: cls,
      caption: columns.caption as string | null,
    });
  }
  return found;
}

test('Parquet files of the Hub open in place: images, class names, captions, splits by their names', async () => {
  await using dataset = await openDataset(path.join(fixtures, 'hub'));
  expect([dataset.format, dataset.size, dataset.classes]).toEqual(['parquet', 24, ['cat', 'dog', 'newt']]);
  expect(dataset.splits).toEqual(['test', 'train']);
  expect(await contents(dataset)).toEqual([...expected.slice(18), ...expected.slice(0, 18)]);
  const { columns } = await dataset.files.index(0);
  expect(columns.get('split')).toEqual(['test', 'test', 'test', 'test']);
  expect(columns.get('image_path')![0]).toBe('18.jpg');
});

test('split selects the files of one split, by any of its usual names', async () => {
  await using train = await openDataset(path.join(fixtures, 'hub'), { split: 'training' });
  expect(await contents(train)).toEqual(expected.slice(0, 18));
  await expect(openDataset(path.join(fixtures, 'hub'), { split: 'val' })).rejects.toThrow(
    'No split "val" here; the files belong to test, train.',
  );
  const { stdout } = await shardtool('ls', path.join(fixtures, 'hub'), '--split', 'test');
  expect(stdout).toContain('6 samples');
  expect(stdout).toContain('3 classes, fields jpg, splits test, train');
});

test('pages of either version, with any codec, with or without dictionaries, contain the same samples', async () => {
  for (const name of readdirSync(path.join(fixtures, 'pages'))) {
    await using dataset = await openDataset(path.join(fixtures, 'pages', name));
    expect(await contents(dataset), name).toEqual(expected);
    const { columns } = await dataset.files.index(2);
    expect(columns.get('boxes')!.at(-1), name).toBe('[{"x":23,"name":"a"},{"x":23,"name":"a"}]');
    expect(columns.get('seen')!.at(-1), name).toBe('2020-09-13T12:26:40.023Z');
    await expect(dataset.get(`${name.replace('.parquet', '')}/000017`)).resolves.toMatchObject({ index: 17 });
  }
});

test('label columns keep decimals, times below a millisecond and large integers of JSON to the last digit', async () => {
  const columnsOf = async (name: string) => {
    await using dataset = await openDataset(path.join(fixtures, 'values', name));
    return Object.fromEntries((await dataset.files.index(0)).columns);
  };
  expect(await columnsOf('pyarrow.parquet')).toEqual({
    price: [1.15, -0.07, null],
    amount: ['1234567890123456.78', '0.5', null],
    id: ['12345678901234567891', '1', null],
    micros: ['2023-11-14T22:13:20.123456Z', '1969-12-31T23:59:59.999999Z', null],
    nanos: ['2023-11-14T22:13:20.123456789Z', '1969-12-31T23:59:59.999999999Z', null],
    list: ['[12345678901234567891,null]', '[]', null],
  });
  expect(await columnsOf('duckdb.parquet')).toEqual({
    document: ['{"id":9007199254740993}', '{"id":9007199254740993}'],
    length: ['P14M3DT4.5S', 'P14M3DT4.5S'],
  });
});

test.each([
  ['in the last page of a row group', 8050, 1, 'the page at byte'],
  ['in a dictionary', 5000, 1, 'the page at byte .. has changed'],
  ['in the header of a page', 5796, 8, 'its column|no page|the page'],
])('damage %s loses only the samples that it affects', async (_, offset, length, why) => {
  const file = path.join(emptyFolder(), 'snappy-1.parquet');
  const bytes = readFileSync(path.join(fixtures, 'pages', 'snappy-1.parquet'));
  writeFileSync(file, bytes.fill(0xa5, offset, offset + length));
  const faults: Fault[] = [];
  await verify(file, { onFault: (fault) => faults.push(fault) });
  const bad = new Set(faults.map(({ key }) => Number(key?.slice(-6))));
  expect(bad.size).toBeGreaterThan(0);
  expect(Math.max(...bad)).toBeLessThan(9);
  for (const { reason } of faults) expect(reason).toMatch(new RegExp(`^field "[a-z.]+" is lost: (${why})`));
  await using dataset = await openDataset(file);
  const loader = dataset.loader({ batchSize: 6, transform: 'raw', onBad: 'skip', shuffle: false, workers: 1 });
  const seen: (string | null)[] = [];
  for await (const { encoded } of loader)
    for (const image of encoded!) seen.push(image.length === 0 ? null : sha256(image));
  expect(seen).toEqual(expected.map(({ sha256: sum }, row) => (bad.has(row) ? null : sum)));
  const keys = loader.report().badSamples.map(({ key }) => Number(key.slice(-6)));
  expect(keys.sort((a, b) => a - b)).toEqual([...bad].sort((a, b) => a - b));
  await expect(convert(file, emptyFolder())).rejects.toMatchObject({ name: 'SampleChecksumError' });
  await indexShards([file]);
  const listed: Fault[] = [];
  await verify(file, { onFault: (fault) => listed.push(fault) });
  expect(listed.map(({ key }) => key)).toEqual(faults.map(({ key }) => key));
});

/** Where the columns `label` and `caption` of the first row group of snappy-1.parquet are. */
const LABELS = { from: 8199, to: 8489 };

test('a changed byte in a column of labels whose pages have checksums is an error, and never gives another label', async () => {
  const whole = readFileSync(path.join(fixtures, 'pages/snappy-1.parquet'));
  const file = path.join(emptyFolder(), 'a.parquet');
  let errors = 0;
  for (let at = LABELS.from; at < LABELS.to; at += 3) {
    const bytes = Buffer.from(whole);
    bytes[at]! ^= 4;
    writeFileSync(file, bytes);
    const read = async () => {
      await using dataset = await openDataset(file);
      return await contents(dataset);
    };
    const found = await read().catch((error: unknown) => error);
    if (found instanceof DamagedShardError) errors++;
    else expect(found, `byte ${at}`).toEqual(expected);
  }
  expect(errors).toBeGreaterThan(50);
});

test('the loader streams row groups, and classes and where select without reading images', async () => {
  await using dataset = await openDataset(path.join(fixtures, 'hub'));
  const loader = dataset.loader({
    batchSize: 4,
    transform: 'train224',
    workers: 1,
    classes: ['newt'],
    where: "split == 'train'",
    lastBatch: 'partial',
  });
  const labels: number[] = [];
  for await (const batch of loader) labels.push(...batch.labels);
  await loader.close();
  expect(labels).toEqual(new Array(expected.slice(0, 18).filter(({ label }) => label === 2).length).fill(2));
});

test('empty row groups, which writers make of an empty table, do not hide any sample', async () => {
  const folder = path.join(emptyFolder(), 'empty');
  cpSync(path.join(fixtures, 'empty'), folder, { recursive: true });
  await using dataset = await openDataset(folder);
  expect(dataset.classes).toEqual([]);
  expect(await contents(dataset)).toEqual(expected);
  const loader = dataset.loader({
    batchSize: 24,
    transform: 'raw',
    where: 'cls != 1',
    lastBatch: 'partial',
    workers: 1,
  });
  for await (const { size } of loader) expect(size).toBe(expected.filter(({ label }) => label !== 1).length);
  await loader.close();
  for (const format of ['tar', 'parquet'] as const) {
    const output = path.join(emptyFolder(), format);
    expect(await convert(folder, output, { format, workers: 1 })).toMatchObject({ samples: 24 });
    await using converted = await openDataset(output);
    expect(await contents(converted)).toEqual(expected);
  }
  expect(await indexShards([folder])).toMatchObject({ shards: 2, samples: 24 });
  expect(await verify(folder, { workers: 1 })).toMatchObject({ faults: 0, samples: 24 });
  await using indexed = await openDataset(folder);
  expect(await contents(indexed)).toEqual(expected);
  await using none = await openDataset(path.join(folder, '0.parquet'));
  expect(none.size).toBe(0);
});

test('a file that is replaced while its dataset is open is an error, and opening it again reads the new file', async () => {
  const place = path.join(emptyFolder(), 'a.parquet');
  cpSync(path.join(fixtures, 'pages/zstd-1.parquet'), place);
  await using before = await openDataset(place);
  cpSync(path.join(fixtures, 'others/two-columns.parquet'), `${place}.new`);
  renameSync(`${place}.new`, place);
  await expect(contents(before)).rejects.toThrow('has changed since its size was read: open it again');
  await using after = await openDataset(place);
  expect(after.fields).toEqual(['jpg', 'mask.png', 'png']);
});

test('a second column of bytes is a separate field, and rows may lack either', async () => {
  const masks: (string | null)[] = JSON.parse(readFileSync(path.join(fixtures, 'others/masks.json'), 'utf8'));
  await using dataset = await openDataset(path.join(fixtures, 'others/two-columns.parquet'));
  const found: unknown[] = [];
  for await (const { label: cls, fields } of dataset.samples()) {
    const image = fields.jpg ?? fields.png;
    found.push([cls, image ? sha256(image) : null, fields['mask.png'] ? sha256(fields['mask.png']) : null]);
  }
  expect(found).toEqual(expected.map(({ sha256: image, label }, i) => [label, i === 3 ? null : image, masks[i]]));
});

test('a column of text becomes the classes of a conversion, if it is named', async () => {
  const file = path.join(fixtures, 'others/string-labels.parquet');
  const output = path.join(emptyFolder(), 'shards');
  await convert(file, output, { classColumn: 'label' });
  await using dataset = await openDataset(output);
  expect(dataset.classes).toEqual(['cat', 'dog', 'newt']);
  const found: number[] = [];
  for await (const { label: cls } of dataset.samples()) found.push(cls);
  const numbers = [2, 0, 1];
  expect(found).toEqual(expected.map(({ label }, i) => (i === 5 ? -1 : numbers[label])));
  const fixed = path.join(emptyFolder(), 'shards');
  await convert(file, fixed, { classColumn: 'label', classes: ['dog', 'newt', 'cat', 'owl'] });
  await using other = await openDataset(fixed);
  expect((await other.get(0)).label).toBe([1, 2, 0][expected[0]!.label]);
  const { code, stderr } = await shardtool('convert', file, path.join(emptyFolder(), 'x'), '--class-column', 'lable');
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(
      'No shard has the column or field "lable" (--class-column); did you mean "label"?; the label columns and fields with text are ',
    ),
  ]);
});

test('files that cannot be read are rejected with clear messages', async () => {
  const refused = (name: string) => openDataset(path.join(fixtures, 'others', name));
  await expect(refused('lists.parquet')).rejects.toThrow('its column "images" holds bytes in lists of lists or deeper');
  await expect(refused('paths.parquet')).rejects.toThrow('no row of its row group 0 contains an image');
  await expect(refused('no-images.parquet')).rejects.toThrow('none of its columns holds bytes');
  const file = path.join(emptyFolder(), 'a.parquet');
  writeFileSync(file, readFileSync(path.join(fixtures, 'pages/plain.parquet')).subarray(0, 40_000));
  await expect(openDataset(file)).rejects.toThrow('does not end like a Parquet file');
});

test('convert keeps images, class names and columns; index and verify add checksums next to the files', async () => {
  const output = path.join(emptyFolder(), 'tars');
  await convert(path.join(fixtures, 'hub'), output, { workers: 1, split: 'train' });
  const manifest = await readManifest(output);
  expect(manifest.classes.map(({ name }) => name)).toEqual(['cat', 'dog', 'newt']);
  expect(readdirSync(output)).toContain('data-train-00000-of-00002.tar');
  await using tars = await openDataset(output);
  expect(await contents(tars)).toEqual(expected.slice(0, 18));

  const folder = path.join(emptyFolder(), 'hub');
  cpSync(path.join(fixtures, 'hub/data'), folder, { recursive: true });
  expect(await indexShards([folder])).toMatchObject({ shards: 3, samples: 24 });
  expect(readdirSync(folder)).toContain('.train-00000-of-00002.shardtool');
  expect((await verify(folder, { workers: 1 })).faults).toBe(0);
  await using indexed = await openDataset(folder, { split: 'train' });
  expect(await contents(indexed)).toEqual(expected.slice(0, 18));
  expect((await indexed.files.index(1)).width.every((width) => width > 0)).toBe(true);
});

test('an index next to a tar is not opened as a shard, and an ambiguous folder names the option to choose', async () => {
  const folder = emptyFolder();
  await convert(path.join(fixtures, 'hub'), path.join(folder, 'tars'), { workers: 1, split: 'train' });
  const place = path.join(folder, 'both');
  cpSync(path.join(folder, 'tars'), place, { recursive: true, filter: (name) => !/(dataset|pack)\.json$/.test(name) });
  await using tars = await openDataset(place);
  expect([tars.format, tars.otherLayouts]).toEqual(['tar', []]);
  cpSync(path.join(fixtures, 'pages/plain.parquet'), path.join(place, 'plain.parquet'));
  const { stdout } = await shardtool('ls', place);
  expect(stdout).toContain('This location also has shards of other formats: --layout parquet reads them.');
  await using other = await openDataset(place, { layout: 'parquet' });
  expect([other.format, other.size]).toEqual(['parquet', 24]);
  await expect(openDataset(place, { layout: 'parkett' as 'parquet' })).rejects.toThrow(OptionError);
});

test('many remote files are opened with one request each, for their footers, and one row group is read', async () => {
  const bytes = readFileSync(path.join(fixtures, 'pages/snappy-1.parquet'));
  const asked: string[] = [];
  const server = createServer(({ headers: { range = '' } }, answer) => {
    asked.push(range);
    const [, from = '', to = ''] = /bytes=(\d*)-(\d*)/.exec(range)!;
    const first = from === '' ? Math.max(0, bytes.length - Number(to)) : Number(from);
    const last = from === '' || to === '' ? bytes.length - 1 : Math.min(Number(to), bytes.length - 1);
    answer.writeHead(206, {
      'content-range': `bytes ${first}-${last}/${bytes.length}`,
      'content-length': last - first + 1,
      etag: '"1"',
    });
    answer.end(bytes.subarray(first, last + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await using dataset = await openDataset(`http://127.0.0.1:${port}/train-{00000..00039}-of-00040.parquet`);
  expect([dataset.size, dataset.shards.length]).toEqual([960, 120]);
  expect(asked.filter((range) => range.startsWith('bytes=-'))).toHaveLength(40);
  expect(asked.length).toBeLessThan(50);
  expect(sha256((await dataset.get(24 * 39 + 17)).fields.png!)).toBe(expected[17]!.sha256);
  server.close();
});

test('where on the sizes of images reads their headers if no index has them', async () => {
  for (const place of [path.join(fixtures, 'hub'), 'test/fixtures/mds/photos', 'examples/photos/cat']) {
    await using dataset = await openDataset(place);
    const sizes = async (where: string) => {
      const loader = dataset.loader({ batchSize: 64, transform: 'raw', where, lastBatch: 'partial', workers: 1 });
      let rows = 0;
      for await (const batch of loader) rows += batch.size;
      await loader.close();
      return rows;
    };
    expect(await sizes('width > 1 and height < 100000'), place).toBe(dataset.size);
    await expect(sizes('width > 100000')).rejects.toThrow('No sample is selected');
  }
});
