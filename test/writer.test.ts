import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { type NewSample, OutputNotEmptyError, verify, Writer, type WriterOptions } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { defaultBucketServer } from './bucket-server.js';
import { emptyFolder } from './datasets.js';
import { filesIn, jpeg, newFolder, PNG, samplesOf } from './pack-workbench.js';

const LAYOUTS = ['tar', 'msgpack', 'lmdb'] as const;

async function written(samples: Iterable<NewSample>, options: WriterOptions = {}, output = newFolder()) {
  const writer = new Writer(output, options);
  for (const sample of samples) await writer.add(sample);
  return { output, report: await writer.close() };
}

/** Twice more than LMDB can hold. The memory is never written, so it is not allocated. */
const HALF = new Uint8Array(2 ** 31);
const AS_LMDB = { format: 'lmdb', maxSampleBytes: 2 ** 40 } as const;

function circular(): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  return Object.assign(value, { value });
}

const numbered = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ key: `a/${i}`, jpg: jpeg(i), label: i % 2 }));

test.each(LAYOUTS)(
  '%s: added samples are in the dataset, field by field, in the order of the calls',
  async (format) => {
    const { output, report } = await written(
      [
        {
          key: 'cat/2',
          jpg: jpeg(2),
          label: 'cat',
          json: { age: 3 },
          txt: 'größer',
          columns: { score: 0.5, ok: true },
        },
        { key: 'dog/1', png: PNG, label: 1, count: 7, bin: Uint8Array.of(1, 2), columns: { score: null } },
        { key: '__proto__', jpg: jpeg(3) },
      ],
      { format, classes: ['cat', 'dog'], columns: { score: 'double', ok: 'bool' } },
    );
    expect(report).toMatchObject({ samples: 3, shards: 1 });
    expect(report.partialFields.map(({ name }) => name)).toContain('json');
    const samples = await samplesOf(output);
    expect(samples.map(({ key, cls, columns }) => [key, cls, columns])).toEqual([
      ['cat/2', 0, { score: 0.5, ok: true }],
      ['dog/1', 1, { score: null, ok: null }],
      ['__proto__', -1, { score: null, ok: null }],
    ]);
    const text = (sample: number, field: string) => Buffer.from(samples[sample]!.fields[field]!, 'latin1').toString();
    expect([text(0, 'json'), text(0, 'txt'), text(0, 'cls'), text(1, 'count')]).toEqual([
      '{"age":3}',
      'größer',
      '0',
      '7',
    ]);
    expect(samples[0]!.fields.jpg).toBe(jpeg(2).toString('latin1'));
    expect(samples[1]!.fields.bin).toBe('\x01\x02');
    expect(samples[1]!.size).toEqual([320, 240]);
    await using dataset = await openDataset(output);
    expect(dataset.classes).toEqual(['cat', 'dog']);
    expect((await verify(output)).faults).toBe(0);
  },
);

test('shards are split and named as by pack, and the same calls give the same bytes', async () => {
  const options = { maxShardSamples: 4, name: 'train', index: ['dali'] } as const;
  const [one, two] = [await written(numbered(10), options), await written(numbered(10), options)];
  expect(one.report.shards).toBe(3);
  const shards = filesIn(one.output).filter((file) => file.endsWith('.tar'));
  expect(shards).toEqual(['train-000000.tar', 'train-000001.tar', 'train-000002.tar']);
  for (const file of filesIn(one.output)) {
    expect(readFileSync(path.join(one.output, file)).equals(readFileSync(path.join(two.output, file)))).toBe(true);
  }
  expect((await openDataset(one.output)).size).toBe(10);
});

test.each([
  ['a key that leads out of the folder', { key: '../a', jpg: jpeg(1) }, /"\.\.\/a" has an invalid key/],
  ['a key with a dot', { key: 'a.b', jpg: jpeg(1) }, /without a dot/],
  ['an unknown class', { key: 'b', jpg: jpeg(1), label: 'cow' }, /"cow", which is not one of the 2 classes/],
  ['an unknown class number', { key: 'b', jpg: jpeg(1), label: 2 }, /2, which is not one of the 2 classes/],
  ['a class as a field', { key: 'b', jpg: jpeg(1), cls: 1 }, /give the class as "label"/],
  ['text for an image', { key: 'b', jpg: 'text' }, /no bytes in its field "jpg"/],
  ['bytes that are not an image', { key: 'b', jpg: Buffer.from('text') }, /"jpg" of sample "b" is not an image/],
  ['an invalid field', { key: 'b', 'X.JPG': jpeg(1) }, /field called "X.JPG"/],
  ['invalid JSON', { key: 'b', jpg: jpeg(1), json: circular() }, /that JSON cannot represent/],
  ['a key with two lines', { key: 'b\nc', jpg: jpeg(1) }, /"b\\nc" has an invalid key: .*on one line/],
  ['a mask without an image', { key: 'b', 'seg.png': PNG, json: {} }, /"b" has no image/],
  ['null', null as never, /A sample must be an object .* not null/],
  ['text', 'b' as never, /A sample must be an object .* not b/],
  ['no field', { key: 'b' }, /has no field/],
  ['an unknown column', { key: 'b', jpg: jpeg(1), columns: { x: 1 } }, /column "x" that the writer does not/],
  ['a repeated key', { key: 'a/0', jpg: jpeg(1) }, /"a\/0" was already written/],
] as const)('the writer rejects %s in add, and writes the other samples', async (_, wrong, sentence) => {
  const writer = new Writer(newFolder(), { classes: ['cat', 'dog'], maxShardSamples: 2 });
  const samples = numbered(6);
  for (const sample of samples.slice(0, 3)) await writer.add(sample);
  await expect(writer.add(wrong as NewSample)).rejects.toThrow(sentence);
  for (const sample of samples.slice(3)) await writer.add(sample);
  expect(await writer.close()).toMatchObject({ samples: 6, shards: 3 });
  expect((await samplesOf(writer.output)).map(({ key }) => key)).toEqual(samples.map(({ key }) => key));
});

test.each([
  [
    'an unknown column type',
    { columns: { score: 'float' } },
    /the column "score" the type "float"; the types are "string", "int", "double", "bool"/,
  ],
  ['a column of the index', { columns: { width: 'int' } }, /"width" has the name of a column of the index/],
  ['a list of columns', { columns: ['score'] }, /"columns" must map names to types, .* not a list/],
  ['a class that is not a string', { classes: [1, 2] }, /"classes" must be a list of names, .* not a list/],
])('the writer rejects %s when it is created', (_, options, sentence) => {
  expect(() => new Writer(newFolder(), options as unknown as WriterOptions)).toThrow(sentence);
});

test('missing and infinite numbers, and values that JSON cannot express, are distinguished', async () => {
  const writer = new Writer(newFolder(), { columns: { v: 'double', n: 'int' } });
  await expect(writer.add({ key: 'a', jpg: jpeg(0), columns: { n: 1n as never } })).rejects.toThrow(
    'has the value 1 in the column "n"',
  );
  await writer.add({ key: 'a', jpg: jpeg(0), columns: { v: Number.NaN } });
  await writer.add({ key: 'b', jpg: jpeg(1), columns: { v: Number.NEGATIVE_INFINITY } });
  await writer.close();
  expect((await samplesOf(writer.output)).map(({ columns }) => columns.v)).toEqual([null, Number.NEGATIVE_INFINITY]);
});

test.each([
  ['tar: a key that is not text', { format: 'tar' }, { key: 'b\udcff', jpg: jpeg(1) }, 'is not text'],
  ['msgpack: a key that is not text', { format: 'msgpack' }, { key: 'b\udcff', jpg: jpeg(1) }, 'is not text'],
  ['lmdb: a key that is not text', { format: 'lmdb' }, { key: 'b\udcff', jpg: jpeg(1) }, 'is not text'],
  ['lmdb: a key that is too long', { format: 'lmdb' }, { key: 'b'.repeat(600), jpg: jpeg(1) }, '600 bytes long'],
  ['msgpack: a key that is too long', { format: 'msgpack' }, { key: 'b'.repeat(70_000), jpg: jpeg(1) }, '70000 bytes'],
  [
    'images only: another field',
    { format: 'lmdb', lmdbValues: 'image' },
    { key: 'b', jpg: jpeg(1), txt: '' },
    '2 fields',
  ],
  [
    'a sample that is too large',
    { maxSampleBytes: 1 << 20 },
    { key: 'b', jpg: jpeg(1), x: Buffer.alloc(1 << 20) },
    'more than the limit of',
  ],
  [
    'lmdb: more than LMDB can hold',
    AS_LMDB,
    { key: 'b', jpg: jpeg(1), a: HALF, b: HALF },
    'LMDB holds at most 4294967295',
  ],
  ['a name that DALI would split', { index: ['dali'] }, { key: 'b c', jpg: jpeg(1) }, 'white space'],
  [
    'a name that wids would truncate',
    { index: ['wids'] },
    { key: 'b'.repeat(97), jpg: jpeg(1) },
    'longer than 100 bytes',
  ],
  ['a name that wids would not find', { index: ['wids'] }, { key: 'ü', jpg: jpeg(1) }, 'that are not ASCII'],
] as const)(
  '%s: add rejects the sample before anything is created, and the others are written',
  async (_, options, wrong, why) => {
    const writer = new Writer(newFolder(), { ...options, maxShardSamples: 2 });
    const refused = () => expect(writer.add(wrong)).rejects.toThrow(why);
    await refused();
    const samples = numbered(4);
    for (const sample of samples) {
      await writer.add(sample);
      await refused();
    }
    expect(await writer.close()).toMatchObject({ samples: 4, shards: 2 });
    expect((await samplesOf(writer.output)).map(({ key }) => key)).toEqual(samples.map(({ key }) => key));
    const nothing = new Writer(newFolder(), options);
    await expect(nothing.add(wrong)).rejects.toThrow(why);
    await expect(nothing.close()).rejects.toThrow('No sample was written');
    expect(existsSync(nothing.output)).toBe(false);
  },
);

test('samples that are not awaited are written in the order of the calls', async () => {
  const writer = new Writer(newFolder(), { maxShardSamples: 7 });
  const added = numbered(30).map((sample) => writer.add(sample));
  const report = await writer.close();
  await Promise.all(added);
  expect(report).toMatchObject({ samples: 30, shards: 5 });
  expect((await samplesOf(writer.output)).map(({ key }) => key)).toEqual(numbered(30).map(({ key }) => key));
});

test('until the writer is closed the folder is not a dataset, and only overwriting accepts it again', async () => {
  const output = newFolder();
  const writer = new Writer(output, { maxShardSamples: 2 });
  for (const sample of numbered(5)) await writer.add(sample);
  await expect(openDataset(output)).rejects.toThrow('its pack did not finish');
  await expect(written(numbered(1), {}, output)).rejects.toThrow('is writing to this dataset');
  await writer.abandon();
  await expect(writer.add(numbered(1)[0]!)).rejects.toThrow('is closed');
  await expect(written(numbered(1), {}, output)).rejects.toThrow('contains an unfinished pack');
  await written(numbered(1), { overwrite: true }, output);
  expect((await openDataset(output)).size).toBe(1);
  await expect(written(numbered(1), {}, output)).rejects.toThrow('already contains a dataset');
  expect(() => new Writer(output)).toThrow(OutputNotEmptyError);
  expect(() => new Writer(output, { part: { index: 0, of: 2 } })).toThrow(OutputNotEmptyError);
});

test('a dataset without samples is an error, and leaves no folder', async () => {
  const output = path.join(emptyFolder(), 'out');
  await expect(new Writer(output).close()).rejects.toThrow('No sample was written');
  expect(existsSync(output)).toBe(false);
});

test('a signal aborts the writer, and leaves no partial files', async () => {
  const stop = new AbortController();
  const writer = new Writer(newFolder(), { signal: stop.signal, maxShardSamples: 3 });
  for (const sample of numbered(4)) await writer.add(sample);
  stop.abort(new Error('enough'));
  await expect(writer.add(numbered(9)[8]!)).rejects.toThrow('enough');
  await expect(writer.close()).rejects.toThrow('enough');
  expect(filesIn(writer.output).filter((file) => /\.part$|\.lock$|dataset\.json$/.test(file))).toEqual([]);
});

test('options that cannot be combined are errors when the writer is created', () => {
  expect(() => new Writer('out', { format: 'zip' as never })).toThrow(/format/);
  expect(() => new Writer('out', { classes: ['a', 'a'] })).toThrow('twice');
  expect(() => new Writer('out', { format: 'lmdb', index: ['wids'] })).toThrow(/tar/);
});

test('samples that are written to a bucket have the same bytes as in a folder, and dataset.json comes last', async () => {
  const server = await defaultBucketServer();
  try {
    await written(numbered(9), { maxShardSamples: 4 }, 's3://out/made');
    const { output } = await written(numbered(9), { maxShardSamples: 4 });
    expect(server.names('out').sort()).toEqual(filesIn(output).map((file) => `made/${file}`));
    for (const file of filesIn(output)) {
      const { bytes } = server.objects.get(`out/made/${file}`)!;
      expect(Buffer.from(bytes).equals(readFileSync(path.join(output, file)))).toBe(true);
    }
    await expect(written(numbered(1), {}, 's3://out/made')).rejects.toThrow('s3://out/made already contains a dataset');
  } finally {
    await server.stop();
  }
});
