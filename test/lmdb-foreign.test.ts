import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ShardtoolError } from '@shardtool/base';
import { lmdb } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { convert } from '@shardtool/writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newFolder } from './pack-workbench.js';
import { TIMES } from './repetitions.js';

/** Made by Python's lmdb and msgpack: see make.py there. */
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

test('pixels without a container are refused, with what to do', async () => {
  const open = (name: string) => openDataset(path.join(FIXTURES, `${name}.mdb`));
  await expect(open('raw')).rejects.toThrow(
    'is a Datum of Caffe with raw pixels, which is not read: write the database again with "convert_imageset --encoded"',
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

test('a value of another kind than that of the first sample is refused, and not read as one of its kind', async () => {
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

test('a text that is not UTF-8 is refused with its key', async () => {
  const found = samplesOf('ocr', (bytes) => replaceAll(bytes, 'two words', 'two\xffwords'));
  await expect(found).rejects.toThrow('the value of the key "label-000000002" is not a text of UTF-8: write it again.');
});

test('damage in such databases ends in an error of ours, and never in a sample outside the file', async () => {
  const files = Object.keys(EXPECTED).map((name) => readFileSync(path.join(FIXTURES, `${name}.mdb`)));
  const change = fc.tuple(fc.nat({ max: 1 << 16 }), fc.nat({ max: 255 }));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...files),
      fc.array(change, { minLength: 1, maxLength: 8 }),
      async (bytes, changes) => {
        const damaged = Buffer.from(bytes);
        for (const [at, byte] of changes) damaged[8192 + (at % (damaged.length - 8192))] = byte;
        try {
          for await (const samples of lmdb.samples(sourceOf(damaged))) {
            for (const { fields } of samples)
              for (const field of fields)
                expect(field.offset >= 0 && field.offset + field.bytes <= damaged.length).toBe(true);
          }
        } catch (error) {
          if (!(error instanceof ShardtoolError)) throw error;
        }
      },
    ),
    { numRuns: 200 * TIMES },
  );
});
