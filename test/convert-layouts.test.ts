import {
  copyFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { crc32 } from '@shardtool/base';
import { layoutOf, readManifest, readShardIndex, type WrittenLayoutName } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { convert, pack } from '@shardtool/writer';
import { beforeAll, expect, test } from 'vitest';
import {
  datasetDigestsOf,
  digestsOf,
  filesIn,
  JPEG,
  newFolder,
  type PackedSample,
  PNG,
  samplesOf,
  tree,
} from './pack-workbench.js';

const layouts: readonly WrittenLayoutName[] = ['tar', 'lmdb', 'msgpack'];

/** Samples with a checksum in place of each payload, so that differences are readable. */
async function briefly(folder: string): Promise<PackedSample[]> {
  return (await samplesOf(folder)).map((sample) => ({
    ...sample,
    fields: Object.fromEntries(
      Object.entries(sample.fields).map(([name, text]) => [name, String(crc32(Buffer.from(text)))]),
    ),
  }));
}

/** One pack of 60 photos with a label column, in three layouts, each converted from the previous one. */
const dataset = {} as Record<WrittenLayoutName, string>;

beforeAll(async () => {
  const labels = path.join(tree({}), 'labels.csv');
  const photos = readdirSync('examples/photos', { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.jpg'),
  );
  const rows = photos.map((file, i) => `${file},${file.split('/')[0]},${i % 7 === 0 ? '' : i / 4}`);
  writeFileSync(labels, `path,class,score\n${rows.join('\n')}\n`);
  dataset.tar = newFolder();
  await pack('examples/photos', dataset.tar, { maxShardSamples: 13, labels, name: 'train' });
  dataset.lmdb = newFolder();
  await convert(dataset.tar, dataset.lmdb, { format: 'lmdb' });
  dataset.msgpack = newFolder();
  await convert(dataset.lmdb, dataset.msgpack, { format: 'msgpack' });
});

test('converting tar to LMDB to msgpack to tar gives the same bytes', async () => {
  const back = newFolder();
  const report = await convert(dataset.msgpack, back);
  expect(report).toMatchObject({ samples: 60, shards: 5, skippedEntries: 0, partialFields: [] });
  expect(datasetDigestsOf(back)).toEqual(datasetDigestsOf(dataset.tar));
});

test('in every layout the same shards have the same samples, columns and checksums, in the same order', async () => {
  const wanted = await briefly(dataset.tar);
  expect(wanted.some(({ columns }) => columns.score !== null)).toBe(true);
  for (const layout of layouts) {
    expect(await briefly(dataset[layout])).toEqual(wanted);
    const { extension, innerFile } = await layoutOf(layout);
    const { classes, columns, shards } = await readManifest(dataset[layout]);
    expect({ classes, columns }).toEqual({
      classes: (await readManifest(dataset.tar)).classes,
      columns: [{ name: 'score', type: 'double' }],
    });
    const inner = innerFile === undefined ? '' : `/${innerFile}`;
    expect(shards.map(({ file }) => file)).toEqual([0, 1, 2, 3, 4].map((n) => `train-00000${n}${extension}${inner}`));
  }
});

test('a conversion is byte-for-byte identical to a pack in that layout', async () => {
  const source = tree({ 'a/1.jpg': JPEG, 'a/1.json': '{"n": 1}', 'b/2.png': PNG, 'b/2.txt': 'caf\u00e9' });
  const tars = newFolder();
  await pack(source, tars);
  for (const format of ['lmdb', 'msgpack'] as const) {
    const [packed, converted] = [newFolder(), newFolder()];
    await pack(source, packed, { format });
    await convert(tars, converted, { format });
    expect(datasetDigestsOf(converted)).toEqual(datasetDigestsOf(packed));
  }
});

test('the loader delivers the same samples in the same order from all layouts', async () => {
  const runs: unknown[] = [];
  for (const layout of layouts) {
    await using shards = await openDataset(dataset[layout]);
    const loader = shards.loader({ batchSize: 16, transform: 'train224', seed: 42, workers: 1, epochsPerLoop: 2 });
    const rows: unknown[] = [];
    for await (const batch of loader) {
      rows.push([[...batch.keys!], [...batch.labels], crc32(batch.images as Uint8Array)]);
    }
    await loader.close();
    runs.push(rows);
  }
  expect((runs[0] as unknown[]).length).toBe(8);
  expect(runs[1]).toEqual(runs[0]);
  expect(runs[2]).toEqual(runs[0]);
});

test('LMDB of images only keeps class numbers in the index, returns them, and rejects other fields', async () => {
  const images = newFolder();
  await convert(dataset.tar, images, { format: 'lmdb', lmdbValues: 'image' });
  const back = newFolder();
  await convert(images, back);
  expect(datasetDigestsOf(back)).toEqual(datasetDigestsOf(dataset.tar));
  const packed = newFolder();
  await pack('examples/photos', packed, { format: 'lmdb', lmdbValues: 'image' });
  const wanted = await briefly(dataset.tar);
  const found = await briefly(images);
  expect(found).toEqual(wanted.map((sample) => ({ ...sample, fields: { jpg: sample.fields.jpg } })));
  expect((await readManifest(packed)).fields).toEqual([{ name: 'jpg', samples: 60 }]);
  expect((await readManifest(packed)).classes).toEqual((await readManifest(images)).classes);
  const shards = newFolder();
  await pack(tree({ 'a/1.jpg': JPEG, 'a/1.txt': 'text' }), shards);
  await expect(convert(shards, newFolder(), { format: 'lmdb', lmdbValues: 'image' })).rejects.toThrow(
    'Sample "a/1" has 2 fields',
  );
  await expect(convert(shards, newFolder(), { lmdbValues: 'image' })).rejects.toThrow(
    '"lmdbValues" requires the format lmdb',
  );
});

test('a single shard is converted, with or without its index', async () => {
  const alone = newFolder();
  await convert(path.join(dataset.lmdb, 'train-000001.lmdb'), alone);
  expect(digestsOf(alone)['train-000001.tar']).toBe(digestsOf(dataset.tar)['train-000001.tar']);
  const tars = tree({ 'other.tar': readFileSync(path.join(dataset.tar, 'train-000002.tar')) });
  const converted = newFolder();
  await convert(tars, converted, { format: 'msgpack' });
  const rows = await briefly(converted);
  const wanted = (await briefly(dataset.tar)).slice(24, 36);
  expect(rows).toEqual(wanted.map((sample) => ({ ...sample, source: '', columns: {} })));
  expect(filesIn(converted)).toEqual(['dataset.json', 'other.msgpack', 'other.parquet', 'pack.json']);
});

test.each(layouts)(
  'a changed byte in a %s shard ends the conversion with shard and key, and nothing looks complete',
  async (format) => {
    const damaged = newFolder();
    await convert(dataset.tar, damaged, { format });
    const { file } = (await readManifest(damaged)).shards[2]!;
    const shard = path.join(damaged, file);
    const name = file.split('/')[0]!;
    const index = await readShardIndex(path.join(damaged, 'train-000002.parquet'));
    const bytes = readFileSync(shard);
    bytes[index.fields.get('jpg')!.offset[4]! + 100]! ^= 1;
    writeFileSync(shard, bytes);
    const output = newFolder();
    const error = await convert(damaged, output, { format: 'tar', workers: 2 }).catch((caught: Error) => caught);
    expect(error).toMatchObject({ name: 'SampleChecksumError', shard: name, key: index.key[4] });
    expect(existsSync(path.join(output, 'train-000002.tar'))).toBe(false);
    expect(filesIn(output).filter((left) => left.endsWith('.part') || left === 'dataset.json')).toEqual([]);
    await expect(openDataset(output)).rejects.toMatchObject({ name: 'UnfinishedPackError' });
  },
);

test('a conversion that fails before its first shard leaves no files, and keeps existing files', async () => {
  const above = newFolder();
  const output = path.join(above, 'new', 'shards');
  const refused = () =>
    expect(convert(dataset.tar, output, { maxSampleBytes: 10 })).rejects.toThrow('more than the limit of 10');
  await refused();
  expect(existsSync(above)).toBe(false);
  mkdirSync(output, { recursive: true });
  await refused();
  expect(readdirSync(output)).toEqual([]);
  writeFileSync(path.join(output, 'notes.txt'), 'mine');
  const stream = createReadStream(path.join(dataset.tar, 'train-000000.tar'));
  await expect(convert(stream, output, { overwrite: true, maxSampleBytes: 10 })).rejects.toThrow(
    'more than the limit of 10',
  );
  expect(readdirSync(output)).toEqual(['notes.txt']);
});

test('a truncated shard, or an index of another shard, ends the conversion', async () => {
  const damaged = newFolder();
  await convert(dataset.tar, damaged);
  const shard = path.join(damaged, 'train-000000.tar');
  writeFileSync(shard, readFileSync(shard).subarray(0, 100_000));
  await expect(convert(damaged, newFolder())).rejects.toThrow('train-000000.tar ends at byte 100000');
  writeFileSync(shard, readFileSync(path.join(dataset.tar, 'train-000000.tar')));
  const other = newFolder();
  await pack(tree({ 'a/1.jpg': JPEG }), other);
  copyFileSync(path.join(other, '000000.parquet'), path.join(damaged, 'train-000000.parquet'));
  await expect(convert(damaged, newFolder())).rejects.toThrow(
    'has 1 sample, but according to dataset.json train-000000.tar has 12',
  );
});

test('an output folder that is in use stays unchanged, and --overwrite replaces an earlier conversion', async () => {
  const output = newFolder();
  await convert(dataset.tar, output, { format: 'lmdb', workers: 1 });
  writeFileSync(path.join(output, 'notes.txt'), 'mine');
  await expect(convert(dataset.tar, output)).rejects.toMatchObject({ name: 'OutputNotEmptyError' });
  await convert(dataset.msgpack, output, { overwrite: true, index: ['wids', 'dali'] });
  const tars = [0, 1, 2, 3, 4].flatMap((n) => ['idx', 'parquet', 'tar'].map((ending) => `train-00000${n}.${ending}`));
  expect(filesIn(output)).toEqual([...tars, 'dataset.json', 'notes.txt', 'pack.json', 'shardindex.json'].sort());
  await convert(dataset.tar, output, { overwrite: true, format: 'msgpack' });
  expect(filesIn(output).filter((file) => /idx|tar|shardindex/.test(file))).toEqual([]);
  await expect(convert(output, output, { overwrite: true })).rejects.toThrow('is also the folder of the input');
  const one = path.join(output, 'train-000000.msgpack');
  await expect(convert(one, output, { overwrite: true })).rejects.toThrow('is also the folder of the input');
  expect((await briefly(output)).length).toBe(60);
});

test('samples with different fields are reported', async () => {
  const [shards, converted] = [newFolder(), newFolder()];
  const report = await pack(tree({ 'a/1.jpg': JPEG, 'a/2.png': PNG, 'a/2.txt': 'text' }), shards);
  const partialFields = ['jpg', 'png', 'txt'].map((name) => ({ name, samples: 1 }));
  expect(report.partialFields).toEqual(partialFields);
  expect((await convert(shards, converted)).partialFields).toEqual(partialFields);
});
