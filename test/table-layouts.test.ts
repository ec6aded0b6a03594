import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { entryOf, isTableLayout, layoutNames, readShardIndex, type TableLayoutName } from '@shardtool/format';
import { inspect, openDataset } from '@shardtool/reader';
import { convert, indexShards, pack, repair, verify, Writer } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { datasetDigestsOf, JPEG, jpeg, PNG } from './pack-workbench.js';
import { pythonWith, runPython } from './python.js';

const LAYOUTS = layoutNames().filter(isTableLayout);
/** Comparing text is much faster than comparing bytes one by one. */
const texts = (fields: Readonly<Record<string, Uint8Array>>) =>
  Object.entries(fields).map(([name, bytes]) => [name, Buffer.from(bytes).toString('latin1')]);
const newPlace = () => path.join(emptyFolder(), 'made');

/** Images of two kinds, some with a mask, text and JSON, and labels of all types, missing in some samples. */
const messy = newPlace();
const writer = new Writer(messy, {
  ...{ classes: ['cat', 'dog'], maxShardSamples: 7 },
  columns: { caption: 'string', count: 'int', score: 'double', odd: 'bool' },
});
for (let i = 0; i < 20; i++) {
  await writer.add({
    key: `a/${i}`,
    ...(i % 3 === 0 ? { png: PNG } : { jpg: jpeg(i) }),
    ...(i % 4 === 0 && { 'mask.png': PNG }),
    ...(i % 5 > 0 && { txt: i % 5 === 1 ? '' : `"ü", ${i}` }),
    ...(i % 7 > 0 && { json: { boxes: [[i, 2, 3, 4]] } }),
    ...(i !== 9 && { label: i % 2 }),
    columns: { score: i / 4, ...(i !== 3 && { caption: `photo ${i}`, count: i - 5, odd: i % 2 === 1 }) },
  });
}
await writer.close();

const labelsOf = async (place: string) => {
  await using dataset = await openDataset(place);
  const rows: unknown[] = [];
  for (let shard = 0; shard < dataset.shards.length; shard++) {
    const { key, cls, columns } = await dataset.files.index(shard);
    const names = [...columns.keys()].sort();
    key.forEach((one, row) => {
      rows.push([one, cls[row], ...names.map((name) => [name, columns.get(name)![row]])]);
    });
  }
  return rows;
};

const made = new Map<string, Promise<string>>();
/** The same in this layout, made once. */
function messyAs(format: TableLayoutName): Promise<string> {
  const make = async () => {
    const place = newPlace();
    expect(await convert(messy, place, { format, workers: 2 })).toMatchObject({ shards: 3, samples: 20 });
    return place;
  };
  if (!made.has(format)) made.set(format, make());
  return made.get(format)!;
}
const photos = await packedPhotos();
const lmdb = newPlace();
await convert(photos, lmdb, { format: 'lmdb', workers: 1 });

/** The shards of a location only, without the files next to them. */
function bareCopy(place: string, name: TableLayoutName): string {
  const bare = newPlace();
  cpSync(place, bare, { recursive: true });
  const { extension, listFile } = entryOf(name);
  for (const file of readdirSync(bare, { recursive: true, withFileTypes: true })) {
    if (file.isFile() && !file.name.endsWith(extension) && file.name !== listFile)
      rmSync(path.join(file.parentPath, file.name));
  }
  for (const file of readdirSync(bare)) {
    // Indexes have the same extension as Parquet shards.
    if (name !== 'parquet' && file.endsWith('.parquet')) rmSync(path.join(bare, file));
  }
  return bare;
}

test.each(LAYOUTS)("%s is read back unchanged, with shardtool's indexes and from the shards alone", async (format) => {
  const there = await messyAs(format);
  expect((await verify(there, { workers: 1 })).faults).toBe(0);
  expect(await labelsOf(there)).toEqual(await labelsOf(messy));
  const bare = bareCopy(there, format);
  expect(await labelsOf(bare)).toEqual(await labelsOf(messy));
  await using before = await openDataset(messy);
  for (const place of [there, bare]) {
    const back = newPlace();
    await convert(place, back, { format: 'tar', workers: 1 });
    await using dataset = await openDataset(back);
    expect(dataset.fields).toEqual(before.fields);
    for await (const sample of before.samples()) {
      const { fields, label: cls } = await dataset.get(sample.key);
      expect([cls, texts(fields)]).toEqual([sample.label, texts(sample.fields)]);
    }
  }
});

test.each(LAYOUTS)(
  '%s can be written from a selection, from other layouts, and from shards of other software',
  async (format) => {
    const of = newPlace();
    const report = await convert(lmdb, of, { format, where: 'class == "cat"', workers: 1 });
    expect(report).toMatchObject({ samples: 10, leftOut: 50 });
    await using dataset = await openDataset(of);
    expect([dataset.size, dataset.fields]).toEqual([10, ['jpg']]);
    const tars = emptyFolder();
    for (const file of readdirSync(photos))
      if (file.endsWith('.tar')) cpSync(path.join(photos, file), path.join(tars, file));
    const foreign = newPlace();
    expect(await convert(tars, foreign, { format, workers: 1 })).toMatchObject({ samples: 60 });
    await using opened = await openDataset(foreign);
    for await (const { key, label: cls, fields } of opened.samples({ checksum: true })) {
      expect([Object.keys(fields), cls >= 0, key.includes('/')]).toEqual([['jpg'], true, true]);
    }
  },
);

test.each(LAYOUTS)(
  'an unfinished conversion to %s is not a dataset, resumes, and replaces no files of others',
  async (format) => {
    const source = newPlace();
    cpSync(messy, source, { recursive: true });
    const last = path.join(source, '000002.tar');
    const whole = readFileSync(last);
    const { fields } = await readShardIndex(path.join(source, '000002.parquet'));
    const damaged = Buffer.from(whole);
    damaged[fields.get('jpg')!.offset.find((at) => at > 0)! + 30]! ^= 1;
    const { atime, mtime } = statSync(last);
    writeFileSync(last, damaged);
    utimesSync(last, atime, mtime);
    const output = newPlace();
    await expect(convert(source, output, { format, workers: 1 })).rejects.toThrow('has changed since it was packed');
    const { listFile, shardFolder } = entryOf(format);
    // The files by which the other software finds the shards.
    for (const late of ['dataset.json', listFile, shardFolder])
      if (late !== undefined) expect(existsSync(path.join(output, late))).toBe(false);
    await expect(openDataset(output)).rejects.toThrow('did not finish');
    writeFileSync(last, whole);
    await expect(convert(source, output, { workers: 1, format })).rejects.toThrow('contains an unfinished pack');
    utimesSync(last, atime, mtime);
    expect(await convert(source, output, { format, workers: 1 })).toMatchObject({ samples: 20, wasCommitted: false });
    expect(await convert(source, output, { workers: 1, format })).toMatchObject({ wasCommitted: true });
    // With one worker and with two.
    expect(datasetDigestsOf(output)).toEqual(datasetDigestsOf(await messyAs(format)));
    // Killed just before the commit.
    rmSync(path.join(output, 'dataset.json'));
    await convert(source, output, { format, workers: 1 });
    expect(datasetDigestsOf(output)).toEqual(datasetDigestsOf(await messyAs(format)));
    await convert(lmdb, output, { format, overwrite: true, workers: 1 });
    expect(readdirSync(output).filter((file) => file.startsWith('.'))).toEqual([]);
    const taken = emptyFolder();
    const file = listFile ?? 'notes.txt';
    writeFileSync(path.join(taken, file), 'of another program');
    await expect(convert(source, taken, { workers: 1, format })).rejects.toThrow(`holds ${file}`);
    expect(readFileSync(path.join(taken, file), 'utf8')).toBe('of another program');
  },
);

test.each(LAYOUTS)('other commands that write shards report that they do not write %s', async (format) => {
  const place = await messyAs(format);
  await expect(pack('examples/photos', place, { workers: 1, append: true })).rejects.toThrow(
    'which only "convert" writes',
  );
  await expect(pack('examples/photos', newPlace(), { format: format as never })).rejects.toThrow('"format"');
  const stream = path.join(emptyFolder(), 'a.tar.gz');
  writeFileSync(stream, gzipSync(readFileSync(path.join(messy, '000000.tar'))));
  await expect(convert(stream, newPlace(), { workers: 1, format })).rejects.toThrow(
    'convert the stream to tar, then the tar to',
  );
  await expect(repair(place, { workers: 1 })).rejects.toThrow('which cannot be repaired');
});

test('the folder of Parquet shards contains no other files, so that software that reads a whole folder reads each sample once', async () => {
  const place = newPlace();
  await convert(messy, place, { format: 'parquet', index: ['crops'], workers: 1 });
  await inspect(place, { workers: 1 });
  const names = (ending: string) => ['00000', '00001', '00002'].map((number) => `train-${number}-of-00003${ending}`);
  expect(readdirSync(path.join(place, 'data'))).toEqual(names('.parquet'));
  const sidecars = ['.crops', '.inspect', '.shardtool'].flatMap(names).sort();
  expect(readdirSync(place).filter((name) => name.startsWith('train'))).toEqual(sidecars);
  expect(readdirSync(place).filter((name) => name.startsWith('pack'))).toEqual(['pack.json']);
});

test('the command line selects the layout with --format, and ls shows what was written', async () => {
  const place = newPlace();
  const { code, stdout } = await shardtool('convert', messy, place, '--format', 'parquet', '--name', 'validation');
  expect([code, stdout]).toEqual([0, expect.stringContaining('20 samples into 3 shards')]);
  expect(readdirSync(path.join(place, 'data'))).toContain('validation-00001-of-00003.parquet');
  expect((await shardtool('ls', place)).stdout).toContain(', 2 classes, fields jpg, json, mask.png, png, txt');
});

test('of two images of a sample, one becomes the image column and the other a separate column', async () => {
  const [source, place] = [newPlace(), newPlace()];
  const pairs = new Writer(source);
  await pairs.add({ key: '0', jpg: JPEG, png: PNG });
  await pairs.add({ key: '1', png: PNG });
  await pairs.close();
  await convert(source, place, { workers: 1, format: 'mds' });
  const { shards } = JSON.parse(readFileSync(path.join(place, 'index.json'), 'utf8'));
  expect(shards[0].column_names).toEqual(['__key__', 'image', 'png', '__missing__']);
  await using dataset = await openDataset(bareCopy(place, 'mds'));
  const found = [];
  for await (const { fields } of dataset.samples()) found.push(Object.keys(fields).sort());
  expect(found).toEqual([['jpg', 'png'], ['png']]);
});

test('a sample in Parquet whose class is not among the names in the file is bad, and verify says why', async () => {
  const place = bareCopy(await messyAs('parquet'), 'parquet');
  const file = path.join(place, 'data/train-00000-of-00003.parquet');
  const bytes = readFileSync(file);
  const labels = Buffer.from(BigInt64Array.of(0n, 1n, 0n, 1n, 0n, 1n, 0n).buffer);
  const at = bytes.indexOf(labels);
  expect([at > 0, bytes.lastIndexOf(labels) === at]).toEqual([true, true]);
  bytes.writeBigInt64LE(70n, at + 3 * 8);
  writeFileSync(file, bytes);
  const faults: unknown[] = [];
  await verify(place, { workers: 1, onFault: ({ key, reason }) => faults.push([key, reason]) });
  expect(faults[0]).toEqual([
    'a/3',
    expect.stringContaining('row 3 has the class 70, but the file names 2 classes, 0 to 1; it is damaged'),
  ]);
  expect(faults.every((fault) => (fault as string[])[0] === 'a/3')).toBe(true);
  await using dataset = await openDataset(place);
  const loader = dataset.loader({
    transform: 'raw',
    batchSize: 20,
    onBad: 'skip',
    lastBatch: 'partial',
    workers: 1,
  });
  const keys: string[] = [];
  for await (const { keys: all, valid } of loader) keys.push(...all.filter((_, row) => valid[row] === 1));
  await loader.close();
  expect(keys).toHaveLength(19);
  expect(keys).not.toContain('a/3');
});

/** Number of rows that readers of whole folders find in a folder. All except globs of DuckDB skip hidden files. */
const ROWS = `
import json, sys
import duckdb, pandas, pyarrow.dataset
folder = json.load(sys.stdin)
json.dump({
    "pyarrow": pyarrow.dataset.dataset(folder).count_rows(),
    "pandas": len(pandas.read_parquet(folder)),
    "duckdb": duckdb.sql(f"select count(*) from read_parquet('{folder}/*')").fetchall()[0][0],
}, sys.stdout)
`;

test.skipIf(pythonWith('pyarrow') === null)(
  "pyarrow, pandas and DuckDB count each sample once in shardtool's Parquet, and in a folder that has been indexed",
  async () => {
    const rows = { pyarrow: 20, pandas: 20, duckdb: 20 };
    expect(runPython(ROWS, path.join(await messyAs('parquet'), 'data'))).toEqual(rows);
    const foreign = path.join(bareCopy(await messyAs('parquet'), 'parquet'), 'data');
    await indexShards([foreign]);
    expect(readdirSync(foreign)).toContain('.train-00000-of-00003.shardtool');
    expect(runPython(ROWS.replace('/*', '/*.parquet'), foreign)).toEqual(rows);
  },
);

/** The metadata that pyarrow and `datasets` use: the schema, the features of the Hub, and the values of rows. */
const ARROW = `
import json, sys
import pyarrow.parquet as pq
file = pq.ParquetFile(json.load(sys.stdin))
table = file.read()
features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
rows = table.to_pylist()
for row in rows:
    row["image"] = row["image"] and [row["image"]["path"], len(row["image"]["bytes"])]
    row["mask.png"] = row["mask.png"] and len(row["mask.png"]["bytes"])
json.dump({"schema": [str(field.type) for field in table.schema], "features": features, "rows": rows}, sys.stdout)
`;

test.skipIf(pythonWith('pyarrow') === null)(
  "pyarrow reads shardtool's Parquet, with the metadata that datasets uses",
  async () => {
    const file = path.join(await messyAs('parquet'), 'data/train-00000-of-00003.parquet');
    const { schema, features, rows } = runPython<{
      readonly schema: readonly string[];
      readonly features: Readonly<Record<string, { readonly _type: string; readonly names?: readonly string[] }>>;
      readonly rows: readonly Readonly<Record<string, unknown>>[];
    }>(ARROW, file);
    expect(Object.fromEntries(Object.keys(features).map((name, i) => [name, schema[i]]))).toEqual({
      ...{ __key__: 'string', image: 'struct<bytes: binary, path: string>', __ending__: 'string', label: 'int64' },
      ...{ json: 'string', 'mask.png': 'struct<bytes: binary, path: string>', txt: 'string' },
      ...{ caption: 'string', count: 'int64', score: 'double', odd: 'bool' },
    });
    expect(features).toMatchObject({ image: { _type: 'Image' }, 'mask.png': { _type: 'Image' } });
    expect(features.label).toEqual({ names: ['cat', 'dog'], _type: 'ClassLabel' });
    await using dataset = await openDataset(messy);
    for (const row of rows) {
      const { label: cls, fields } = await dataset.get(row.__key__ as string);
      const image = fields[row.__ending__ as string]!;
      expect([row.label, row.image]).toEqual([cls, [null, image.length]]);
      expect(row.txt).toBe(fields.txt === undefined ? null : Buffer.from(fields.txt).toString());
      expect(row['mask.png']).toBe(fields['mask.png']?.length ?? null);
    }
    expect(rows.map(({ caption, count, odd, score }) => [caption, count, odd, score])).toContainEqual([
      null,
      null,
      null,
      0.75,
    ]);
  },
);
