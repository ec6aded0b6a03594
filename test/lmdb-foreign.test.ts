import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ShardtoolError } from '@shardtool/base';
import { lmdb, lmdbImages, readNpyHeader } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { convert } from '@shardtool/writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { putVarint } from '#format/parquet/varint';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { writeDatabase } from './lmdb-shards.js';
import { newFolder } from './pack-workbench.js';
import { TIMES } from './repetitions.js';

/** Written by Python's lmdb and msgpack: see make.py there. */
const FIXTURES = 'test/fixtures/lmdb-foreign';
const PHOTOS = readdirSync('examples/photos', { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort()
  .slice(0, 4)
  .map((name) => `examples/photos/${name}/${name}_000.jpg`);
const IMAGES = PHOTOS.map((file) => readFileSync(file).toString('latin1'));

/** Key, fields, class and label columns of each sample. */
async function contents(location: string) {
  await using dataset = await openDataset(location);
  const found: unknown[] = [];
  for await (const { key, fields, label, columns } of dataset.samples({ checksum: true })) {
    const texts = Object.entries(fields).map(([name, bytes]) => [name, Buffer.from(bytes).toString('latin1')]);
    found.push([key, Object.fromEntries(texts), label, columns]);
  }
  return found;
}

const EXPECTED: Readonly<Record<string, (i: number) => unknown>> = {
  tensorpack: (i) => [`0000000${i}`, { jpg: IMAGES[i] }, [3, 0, 999, 200][i], {}],
  ocr: (i) => [`image-00000000${i + 1}`, { jpg: IMAGES[i] }, -1, { text: ['caf\u00e9', 'two words', null, 'end'][i] }],
  datum: (i) => [`0000000${i}_${PHOTOS[i]!.slice(16, -4)}`, { jpg: IMAGES[i] }, 10 + i, {}],
};

test.each(Object.keys(EXPECTED))(
  'a database of %s is read in place and converted, with its classes and texts',
  async (name) => {
    const file = path.join(FIXTURES, `${name}.mdb`);
    const expected = IMAGES.map((_, i) => EXPECTED[name]!(i));
    expect(await contents(file)).toEqual(expected);
    const shards = newFolder();
    await convert(file, shards);
    const converted = (await contents(shards)) as [string, Record<string, string>, number, unknown][];
    expect(converted.map(([key, fields, label, columns]) => [key, { jpg: fields.jpg }, label, columns])).toEqual(
      expected,
    );
  },
);

/** The expected array for a Datum of make.py, [height, width, channels]. */
function arrayOf(number: number, shape: readonly [number, number, number], round: (value: number) => number) {
  const [channels, height, width] = shape;
  const values: number[] = [];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++)
      for (let c = 0; c < channels; c++) values.push(round(c * 101 + y * 31 + x * 3 + number * 7));
  }
  return values;
}

/** Key, shape, values and class of each sample with an array. */
async function arraysOf(location: string) {
  await using dataset = await openDataset(location);
  const found: unknown[] = [];
  for await (const { key, fields, label } of dataset.samples({ checksum: true })) {
    const { dtype, shape, offset } = readNpyHeader(fields.npy!);
    const values = Buffer.from(fields.npy!.subarray(offset));
    const floats = () => Array.from({ length: values.length / 4 }, (_, i) => values.readFloatLE(4 * i));
    found.push([
      key,
      Object.keys(fields).filter((name) => name !== 'cls'),
      shape,
      dtype === '<f4' ? floats() : [...values],
      label,
    ]);
  }
  return found;
}

const GRAY = (values: number[]) => values.flatMap((value) => [value, value, value]);

test.each([
  ['tar', undefined],
  ['msgpack', 2],
  ['lmdb', undefined],
] as const)(
  'raw pixels of Caffe become arrays of red, green and blue in shards of %s',
  async (format, maxShardSamples) => {
    const bytes = (number: number, shape: [number, number, number]) => arrayOf(number, shape, (value) => value % 256);
    const shards = newFolder();
    await convert(path.join(FIXTURES, 'datum-pixels.mdb'), shards, { format, maxShardSamples });
    expect(await arraysOf(shards)).toEqual([
      ['00000000_cat/a', ['npy'], [20, 30, 3], bytes(0, [3, 20, 30]), 7],
      ['00000001_cat/b', ['npy'], [5, 4, 3], bytes(1, [3, 5, 4]), 0],
      ['00000002_dog/c', ['npy'], [60, 80, 3], GRAY(bytes(2, [1, 60, 80])), 300],
      ['00000003_dog/d', ['npy'], [60, 50, 3], bytes(3, [3, 60, 50]), -1],
      ['00000004_dog/e', ['npy'], [3, 2, 4], bytes(4, [4, 3, 2]), -1],
    ]);
  },
);

test('float_data of Caffe becomes an array of float32', async () => {
  const floats = (number: number, shape: [number, number, number]) =>
    arrayOf(number, shape, (value) => Math.fround(value / 8 - 3));
  const shards = newFolder();
  await convert(path.join(FIXTURES, 'datum-floats.mdb'), shards);
  expect(await arraysOf(shards)).toEqual([
    ['0', ['npy'], [4, 5, 3], floats(0, [3, 4, 5]), 3],
    ['1', ['npy'], [30, 40, 3], floats(1, [3, 30, 40]), -1],
    ['2', ['npy'], [1, 1, 16], floats(2, [16, 1, 1]), -1],
    ['3', ['npy'], [2, 2, 1], floats(3, [1, 2, 2]), 1],
  ]);
});

test('a loader delivers the pixels of a converted Caffe database', async () => {
  const shards = newFolder();
  await convert(path.join(FIXTURES, 'datum-pixels.mdb'), shards);
  await using dataset = await openDataset(shards);
  const found = new Map<string, number[]>();
  const keys = ['00000000_cat/a', '00000002_dog/c'];
  for await (const batch of dataset.loader({ workers: 1, collate: 'list', keys }))
    for (const [row, { pixels }] of batch.list!.entries()) found.set(batch.keys[row]!, [...pixels]);
  const bytes = (value: number) => value % 256;
  expect(found.get(keys[0]!)).toEqual(arrayOf(0, [3, 20, 30], bytes));
  expect(found.get(keys[1]!)).toEqual(GRAY(arrayOf(2, [1, 60, 80], bytes)));
});

test('pixels that start like an image file are read as pixels if their length matches their size', async () => {
  const found = await datumSamples((bytes) => {
    const first = bytes.indexOf(Buffer.from(pixelsOf(1)));
    expect(first).toBeGreaterThan(0);
    bytes.set([0xff, 0xd8, 0xff, 0xe0], first);
  });
  expect(found.map(({ fields }) => fields[0]!.name)).toEqual(['npy', 'npy', 'npy', 'npy', 'npy']);
});

/** The bytes of the 5 by 4 pixels of sample 1, plane by plane, blue first. */
function pixelsOf(number: number): number[] {
  const values = arrayOf(number, [3, 5, 4], (value) => value % 256);
  return [2, 1, 0].flatMap((channel) => values.filter((_, i) => i % 3 === channel));
}

/** The samples that `convert` finds in the database of raw pixels, in which `change` has changed the bytes. */
async function datumSamples(change: (bytes: Buffer) => void) {
  const bytes = readFileSync(path.join(FIXTURES, 'datum-pixels.mdb'));
  change(bytes);
  const source = await lmdb.unpack!(sourceOf(bytes));
  const found = [];
  for await (const samples of lmdb.samples(source)) found.push(...samples);
  return found;
}

test('a Datum with another kind or size than stated is rejected with its key, and not read as pixels', async () => {
  const change = (offset: number, value: number) =>
    datumSamples((bytes) => {
      const data = bytes.indexOf(Buffer.from(pixelsOf(1)));
      bytes[data + offset] = value;
    });
  // The height is 5, and the last byte of the Datum is the flag of encoded images.
  await expect(change(-5, 6)).rejects.toThrow(
    'the Datum of the key "00000001_cat/b.jpg" has 60 bytes of pixels, but the size 3 x 6 x 4; it is damaged',
  );
  await expect(change(63, 1)).rejects.toThrow(
    'the Datum of the key "00000001_cat/b.jpg" has an encoded image, but the first one has raw pixels',
  );
});

test('the error for raw pixels that cannot be read in place says what to do', async () => {
  const open = (name: string) => openDataset(path.join(FIXTURES, `${name}.mdb`));
  for (const name of ['raw', 'datum-pixels', 'datum-floats'])
    await expect(open(name)).rejects.toThrow(
      'is a Datum of Caffe with raw pixels, which cannot be read in place: convert the database with "shardtool convert"',
    );
  await expect(open('tensorpack-pixels')).rejects.toThrow(
    'has an array of |u1 with 3 dimensions, which is not read: read the database with tensorpack',
  );
});

function sourceOf(bytes: Buffer): Parameters<typeof lmdb.samples>[0] {
  return {
    location: 'a.mdb',
    size: bytes.length,
    readAt: async (offset, target) => bytes.copy(target, 0, offset, offset + target.length),
    close: async () => undefined,
  };
}

/** The samples of a fixture in which `change` has changed the bytes. */
async function samplesOf(name: string, change: (bytes: Buffer) => void, onSkipped?: (key: string) => void) {
  const bytes = readFileSync(path.join(FIXTURES, `${name}.mdb`));
  change(bytes);
  const found = [];
  for await (const samples of lmdb.samples(sourceOf(bytes), onSkipped)) found.push(...samples);
  return found;
}

function replaceAll(bytes: Buffer, from: string, to: string): void {
  for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from)) bytes.write(to, at, 'latin1');
}

test('a value of another kind than the first sample is rejected, and not read as that kind', async () => {
  const found = samplesOf('tensorpack', (bytes) => {
    const label = bytes.indexOf(IMAGES[1]!, 0, 'latin1') + IMAGES[1]!.length;
    expect(bytes[label]).toBe(0);
    // An empty string of msgpack.
    bytes[label] = 0xa0;
  });
  await expect(found).rejects.toThrow(
    'the value of the key "00000001" has a text as value 1, unlike the first sample, with a number, which is not read',
  );
});

test('a text without an image is counted as skipped, like any other entry', async () => {
  const skipped: string[] = [];
  const rename = (bytes: Buffer) => replaceAll(bytes, 'label-000000004', 'label-000000009');
  const found = await samplesOf('ocr', rename, (key) => skipped.push(key));
  expect(found.map(({ labels }) => labels!.get('text'))).toEqual(['caf\u00e9', 'two words', null, null]);
  expect(skipped).toEqual(['label-000000009', 'lexicon-000000001']);
});

test('the error for a text that is not UTF-8 names its key', async () => {
  const found = samplesOf('ocr', (bytes) => replaceAll(bytes, 'two words', 'two\xffwords'));
  await expect(found).rejects.toThrow('the value of the key "label-000000002" is not a text of UTF-8: write it again.');
});

test('damage in such databases throws a ShardtoolError, and never gives a sample from outside the file', async () => {
  const names = [...Object.keys(EXPECTED), 'datum-pixels', 'datum-floats'];
  const files = names.map((name) => readFileSync(path.join(FIXTURES, `${name}.mdb`)));
  const change = fc.tuple(fc.nat({ max: 1 << 16 }), fc.nat({ max: 255 }));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...files),
      fc.array(change, { minLength: 1, maxLength: 8 }),
      async (bytes, changes) => {
        const damaged = Buffer.from(bytes);
        for (const [at, byte] of changes) damaged[8192 + (at % (damaged.length - 8192))] = byte;
        try {
          const source = await lmdb.unpack!(sourceOf(damaged));
          for await (const samples of lmdb.samples(source)) {
            for (const { fields } of samples) {
              for (const field of fields) {
                expect(field.offset >= 0 && field.offset + field.bytes <= source.size).toBe(true);
                if (field.name === 'npy') await source.readAt(field.offset, Buffer.alloc(field.bytes));
              }
            }
          }
        } catch (error) {
          if (!(error instanceof ShardtoolError)) throw error;
        }
      },
    ),
    { numRuns: 200 * TIMES },
  );
});

/** A database of encoded Datums with these keys. The field after the label, if any, precedes the flag of encoded images. */
function encodedDatums(keys: readonly string[], label: (i: number) => readonly number[], cut = 0): string {
  const file = path.join(emptyFolder(), lmdbImages.innerFile!);
  const fd = openSync(file, 'wx');
  const writer = lmdbImages.createWriter(fd, file);
  for (const [i, key] of keys.entries()) {
    const image = Buffer.from(IMAGES[i]!, 'latin1');
    const length = Buffer.alloc(5);
    const head = [0x22, ...length.subarray(0, putVarint(length, 0, image.length))];
    const value = Buffer.concat([Uint8Array.from(head), image, Uint8Array.from(label(i))]);
    const stored = i === 1 ? value.subarray(0, value.length - cut) : value;
    writer.begin(key, [{ name: 'jpg', bytes: stored.length }])[0]!.set(stored);
    writer.commit();
  }
  writer.finish();
  closeSync(fd);
  return file;
}

test('the label of a Datum is never read from another field, and a truncated Datum is rejected', async () => {
  const keys = ['a', 'b', 'c'];
  // label: 5 + i, float_data: 2.0 with a byte that is the tag of a label, encoded: true
  const withFloat = (i: number) => [0x28, 5 + i, 0x35, 0, 0x28, 7, 0x40, 0x38, 1];
  const labels = async (file: string) =>
    ((await contents(file)) as [string, unknown, number][]).map(([, , cls]) => cls);
  expect(await labels(encodedDatums(keys, withFloat))).toEqual([5, 6, 7]);
  // A negative label means that there is no class.
  const negative = [0x28, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0x38, 1];
  expect(await labels(encodedDatums(keys, (i) => (i === 2 ? negative : [0x28, i])))).toEqual([0, 1, -1]);
  for (const [label, cut] of [
    [[0x28, 0xac, 2], 1],
    [negative, 4],
    [[0x28, 1, 0x38, 1], 1],
    [[0x28, 1, 0x35, 1, 1, 1, 1], 2],
  ] as const) {
    await expect(labels(encodedDatums(keys, () => label, cut))).rejects.toThrow(
      'the value of the key "b" is not a Datum',
    );
  }
});

test('two Datums whose keys differ only in their extensions are not converted to samples with the same key', async () => {
  const file = encodedDatums(['a/1.jpg', 'a/1.png', 'a/2.jpg'], (i) => [0x28, i]);
  const error = await convert(file, newFolder()).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'DuplicateKeyError', key: 'a/1' });
});

test('keys with extensions become no tars, and the error names a format that stores them', async () => {
  const images = writeDatabase(newFolder(), [['cat/1.jpg', 9, 1]]);
  const { code, stderr } = await shardtool('convert', images, newFolder());
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /the key "cat\/1\.jpg" would read back under another name, .*; choose another key, or set --format msgpack\.\n$/,
  );
  const shards = newFolder();
  await convert(images, shards, { format: 'msgpack' });
  await using dataset = await openDataset(shards);
  expect((await dataset.get('cat/1.jpg')).fields.jpg).toHaveLength(9);
});
