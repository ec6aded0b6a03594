/** Chunks that Lightning's own writer wrote (test/fixtures/litdata/make.py), in place and converted. */
import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ShardtoolError } from '@shardtool/base';
import { readManifest, type Source } from '@shardtool/format';
import { type Dataset, openDataset } from '@shardtool/reader';
import { convert, indexShards, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { litdata } from '#format/layouts/litdata/index';
import { emptyFolder } from './datasets.js';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

const fixtures = 'test/fixtures/litdata';
interface Expected {
  readonly image: string;
  readonly mask: string;
  readonly label: number;
  readonly caption: string;
  readonly score: number;
  readonly checked: boolean;
  readonly meta: { readonly width: number };
}
const expected: readonly Expected[] = JSON.parse(readFileSync(path.join(fixtures, 'expected.json'), 'utf8'));
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

async function contents(dataset: Dataset) {
  const found: unknown[] = [];
  for await (const { label: cls, fields } of dataset.samples({ checksum: true })) {
    const caption = Buffer.from(fields['caption.txt']!).toString();
    found.push({ image: sha256(fields.jpg!), mask: sha256(fields['mask.png']!), label: cls, caption });
  }
  return found;
}
const withoutValues = expected.map(({ image, mask, label, caption }) => ({ image, mask, label, caption }));
const pairs = expected.map(({ image, label }) => [image, label]);

async function pairsOf(location: string) {
  await using dataset = await openDataset(location);
  const found: unknown[] = [];
  for await (const { label: cls, fields } of dataset.samples()) found.push([sha256(fields.jpg!), cls]);
  return found;
}

/** A copy that may be changed. */
function copyOf(name: string): string {
  const folder = path.join(emptyFolder(), name);
  cpSync(path.join(fixtures, name), folder, { recursive: true });
  return folder;
}

test("LitData's own chunks open in place, with every value that was written", async () => {
  await using dataset = await openDataset(path.join(fixtures, 'photos'));
  expect([dataset.format, dataset.size, dataset.shards.length]).toEqual(['litdata', expected.length, 3]);
  expect(dataset.fields).toEqual(['caption.txt', 'jpg', 'mask.png']);
  expect(await contents(dataset)).toEqual(withoutValues);
  const found: unknown[] = [];
  for (let shard = 0; shard < 3; shard++) {
    const { columns, key } = await dataset.files.index(shard);
    const rows = key.map((_, i) => [...columns.values()].map((values) => values[i]));
    expect([[...columns.keys()], key[0]]).toEqual([['checked', 'meta', 'score'], `chunk-0-${shard}/000000`]);
    found.push(...rows);
  }
  expect(found).toEqual(expected.map(({ checked, meta, score }) => [checked, meta.width, score]));
});

test('the loader streams LitData chunks, and where can use their values', async () => {
  await using dataset = await openDataset(path.join(fixtures, 'photos'));
  const options = { batchSize: 3, transform: 'train224', workers: 1, lastBatch: 'partial' } as const;
  const labels: number[] = [];
  for await (const batch of dataset.loader({ ...options, where: 'score < 1' })) labels.push(...batch.labels);
  expect(labels.sort()).toEqual([0, 0, 1, 1]);
});

test('the class of a tuple sample is its only integer', async () => {
  expect(await pairsOf(path.join(fixtures, 'tuples'))).toEqual(pairs);
});

test('index adds checksums and sizes next to the chunks, and verify detects later changes', async () => {
  const folder = copyOf('photos');
  expect(await indexShards([folder])).toMatchObject({ shards: 3, samples: expected.length });
  expect(readdirSync(folder)).toContain('chunk-0-0.parquet');
  expect((await verify(folder, { workers: 1, check: 'decode' })).faults).toBe(0);
  const chunk = path.join(folder, 'chunk-0-1.bin');
  const { atime, mtime } = statSync(chunk);
  const bytes = readFileSync(chunk);
  bytes[bytes.length - 100]! ^= 1;
  writeFileSync(chunk, bytes);
  utimesSync(chunk, atime, mtime);
  expect((await verify(folder, { workers: 1 })).faults).toBeGreaterThan(0);
});

test('convert keeps fields, classes and values, also of chunks that are compressed as a whole', async () => {
  const output = path.join(emptyFolder(), 'tars');
  await convert(path.join(fixtures, 'photos'), output, { workers: 1, format: 'tar' });
  expect((await readManifest(output)).columns.map(({ name }) => name)).toEqual(['checked', 'meta', 'score']);
  await using dataset = await openDataset(output);
  expect(await contents(dataset)).toEqual(withoutValues);
  const unpacked = path.join(emptyFolder(), 'tars');
  await convert(path.join(fixtures, 'compressed'), unpacked, { workers: 1 });
  expect(await pairsOf(unpacked)).toEqual(pairs);
});

test.each(['framed', 'samples'])('convert reads chunks with compressed samples (%s)', async (name) => {
  const output = path.join(emptyFolder(), 'tars');
  await convert(path.join(fixtures, name), output, { workers: 1 });
  expect(await pairsOf(output)).toEqual(pairs);
});

test('convert reads rows in Arrow tables, with every value that was written', async () => {
  const output = path.join(emptyFolder(), 'tars');
  await convert(path.join(fixtures, 'rows'), output, { workers: 1 });
  await using dataset = await openDataset(output);
  expect(await contents(dataset)).toEqual(withoutValues);
  const found: unknown[] = [];
  for await (const { columns } of dataset.samples()) found.push(columns);
  expect(found).toEqual(expected.map(({ checked, meta, score }) => ({ checked, meta_width: meta.width, score })));
});

test('convert reads Arrow tables of several record batches that are compressed with zstd', async () => {
  const output = path.join(emptyFolder(), 'tars');
  await convert(path.join(fixtures, 'rows-zstd'), output, { workers: 1 });
  await using dataset = await openDataset(output);
  let i = 0;
  for await (const { key, label, fields, columns } of dataset.samples()) {
    expect([key, label, columns]).toEqual([`chunk-0-0/${String(i).padStart(6, '0')}`, i % 7, { odd: i % 2 === 1 }]);
    expect(Buffer.from(fields['caption.txt']!).toString()).toBe(`text ${i} `.repeat(i % 5));
    i++;
  }
  expect(i).toBe(300);
});

test.each([
  ['rows-missing', 'its value "label" is missing in some rows'],
  ['rows-other', 'some of its rows have the value "extra", which the first row does not have'],
])('rows that samples cannot express (%s) are rejected with a clear message', async (name, sentence) => {
  await expect(convert(path.join(fixtures, name), emptyFolder(), { workers: 1 })).rejects.toThrow(sentence);
});

test.each(['framed', 'samples', 'rows', 'rows-zstd'])(
  'damage in %s throws a ShardtoolError, and never gives a value from outside the chunk',
  async (name) => {
    const file = path.join(fixtures, name, 'chunk-0-0.bin');
    const original = readFileSync(file);
    const random = randomOf(`litdata ${name}`);
    const values = async (bytes: Uint8Array) => {
      const source: Source = {
        location: path.resolve(file),
        size: bytes.length,
        readAt: async (offset, target) => Buffer.from(bytes.subarray(offset, offset + target.length)).copy(target),
        close: async () => undefined,
      };
      const plain = await litdata.unpack!(source);
      try {
        for await (const samples of litdata.samples(plain))
          for (const { fields } of samples)
            for (const { offset, bytes } of fields) expect(offset + bytes).toBeLessThanOrEqual(plain.size);
      } finally {
        await plain.close();
      }
    };
    await values(original);
    for (let i = 0; i < 150 * TIMES; i++) {
      const changed = Buffer.from(original);
      for (let n = 0; n < 3; n++) changed[Math.floor(random() * changed.length)] = random() * 256;
      const cut = random() < 0.2 ? changed.subarray(0, random() * changed.length) : changed;
      await values(cut).catch((error) => {
        if (!(error instanceof ShardtoolError)) throw error;
      });
    }
  },
);

test.each([
  ['pickled', 'its value "extra" is pickled, and reading it would mean running its content'],
  ['compressed', 'Convert it with "shardtool convert"'],
  ['framed', 'its samples are compressed in groups, so its samples cannot be read individually. Convert it with'],
  ['samples', 'its samples are compressed one by one, so'],
  ['rows', 'its rows are in an Arrow table, which newer versions of litdata use for dicts of plain values, so'],
])('LitData chunks of the kind "%s" are rejected with a clear message', async (name, sentence) => {
  await expect(openDataset(path.join(fixtures, name))).rejects.toThrow(sentence);
});

test('a chunk without a list, one that the list does not contain, and lists of other data throw clear errors', async () => {
  const alone = path.join(emptyFolder(), 'chunk-0-0.bin');
  copyFileSync(path.join(fixtures, 'tuples/chunk-0-0.bin'), alone);
  await expect(openDataset(alone)).rejects.toThrow('cannot be read without index.json');
  const folder = copyOf('tuples');
  const list = path.join(folder, 'index.json');
  const said = JSON.parse(readFileSync(list, 'utf8'));
  const saying = async (change: object, config: object = {}) => {
    writeFileSync(list, JSON.stringify({ ...said, ...change, config: { ...said.config, ...config } }));
    return openDataset(folder).then(
      () => 'opened',
      (error: Error) => error.message,
    );
  };
  expect(await saying({})).toBe('opened');
  const [first] = said.chunks;
  for (const filename of ['../chunk-0-0.bin', '/etc/passwd', 'https://elsewhere/chunk-0-0.bin'])
    expect(await saying({ chunks: [{ ...first, filename }] })).toContain(`names ${filename}`);
  expect(await saying({ chunks: [{ ...first, chunk_size: 3 }] })).toContain('it has 4 samples, but index.json says 3');
  expect(await saying({}, { encryption: { algorithm: 'fernet', level: 'chunk' } })).toContain('it is encrypted');
  expect(await saying({}, { item_loader: 'TokensLoader' })).toContain('it was written for "TokensLoader"');
  expect(await saying({}, { data_format: ['pil', 'int'] })).toContain(
    'by the serializer "pil", which shardtool does not read',
  );
  expect(await saying({}, { data_format: ['bytes'] })).toContain(
    'the description of its values in index.json cannot be read',
  );
  expect(await saying({}, { data_format: ['bytes', 'bool'] })).toContain('is not a value of its encoding');
});
