/** A pack stores the content of files, whatever their names are. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fieldOfKind, type ImageKind, kindOfField } from '@shardtool/format';
import { type PackOptions, pack } from '@shardtool/writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newFolder, samplesOf, tree } from './pack-workbench.js';
import { TIMES } from './repetitions.js';

const IMAGES: Readonly<Partial<Record<ImageKind, Buffer>>> = {
  jpeg: readFileSync('test/fixtures/odd-images/one-pixel.jpg'),
  png: readFileSync('test/fixtures/odd-images/palette.png'),
  webp: readFileSync('test/fixtures/odd-images/lossy.webp'),
  gif: readFileSync('test/fixtures/odd-images/animated.gif'),
  tiff: readFileSync('test/fixtures/odd-images/picture.tif'),
};

/** Bytes that depend on `seed`, some more than fit in the write buffer. */
const content = fc
  .record({ seed: fc.nat(255), length: fc.oneof(fc.nat(40), fc.nat(20_000)) })
  .map(({ seed, length }) => Buffer.from(Array.from({ length }, (_, i) => (i * 31 + seed * 7) & 0xff)));

const sample = fc.record({
  kind: fc.constantFrom(...(Object.keys(IMAGES) as ImageKind[])),
  trailing: content,
  named: fc.constantFrom('jpg', 'jpeg', 'png', 'webp', 'gif', 'tif'),
  others: fc.dictionary(fc.constantFrom('a', 'json', 'kpt.npy', 'txt', 'xyz', 'zz.bin'), content),
});

type Sample = typeof sample extends fc.Arbitrary<infer S> ? S : never;

/** The files of a sample by the names of their fields, and the expected names in the shard. */
function filesOf({ kind, trailing, named, others }: Sample, number: number) {
  // Bytes after the end of an image belong to its file.
  const image = Buffer.concat([IMAGES[kind]!, trailing]);
  const stem = `c/${number}`;
  const files = { [`${stem}.${named}`]: image };
  for (const [field, bytes] of Object.entries(others)) files[`${stem}.${field}`] = bytes;
  const field = kindOfField(named) === kind ? named : fieldOfKind(kind);
  return { files, expected: { ...others, [field]: image } };
}

async function fieldsIn(output: string): Promise<Map<string, Record<string, string>>> {
  return new Map((await samplesOf(output)).map(({ key, fields: { cls: _, ...fields } }) => [key, fields]));
}

function textOf(fields: Readonly<Record<string, Uint8Array>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, bytes]) => [name, Buffer.from(bytes).toString('latin1')]),
  );
}

test.each(['tar', 'msgpack', 'lmdb'] as const)(
  'every field in %s is byte-for-byte its file, whatever the content of images is',
  async (format) => {
    const options = fc.constantFrom<PackOptions>({}, { inFlight: 4 }, { check: 'decode' }, { shuffle: false });
    await fc.assert(
      fc.asyncProperty(fc.array(sample, { minLength: 1, maxLength: 8 }), options, async (samples, chosen) => {
        const all = samples.map(filesOf);
        const output = newFolder();
        // An extension that no file has is rejected.
        const fields = ['kpt.npy', 'zz.bin'].filter((field) => samples.some(({ others }) => field in others));
        await pack(tree(Object.assign({}, ...all.map(({ files }) => files))), output, { format, fields, ...chosen });
        const found = await fieldsIn(output);
        expect(found.size).toBe(samples.length);
        for (const [number, { expected }] of all.entries()) expect(found.get(`c/${number}`)).toEqual(textOf(expected));
      }),
      { numRuns: 12 * TIMES },
    );
  },
);

const MISNAMED = { image: IMAGES.png!, json: Buffer.from('{"caption":"a word"}') };

test('parts of a pack store a misnamed image and the files next to it byte for byte', async () => {
  const files = [0, 1, 2, 3].flatMap((number) => [
    [`c/${number}.jpg`, MISNAMED.image],
    [`c/${number}.json`, MISNAMED.json],
  ]);
  const source = tree(Object.fromEntries(files));
  const output = newFolder();
  for (const index of [0, 1]) await pack(source, output, { part: { index, of: 2 }, maxShardSamples: 2 });
  const expected = textOf({ png: MISNAMED.image, json: MISNAMED.json });
  const found = await fieldsIn(output);
  expect([...found.keys()].sort()).toEqual(['c/0', 'c/1', 'c/2', 'c/3']);
  for (const fields of found.values()) expect(fields).toEqual(expected);
});

test('a misnamed image with boxes of COCO is stored byte for byte, with its boxes', async () => {
  const source = tree({ 'one.webp': MISNAMED.image });
  const coco = path.join(tree({}), 'coco.json');
  writeFileSync(
    coco,
    JSON.stringify({
      images: [{ id: 1, file_name: 'one.webp', width: 320, height: 240 }],
      annotations: [{ id: 1, image_id: 1, category_id: 1, bbox: [0, 0, 1, 1], area: 1, iscrowd: 0 }],
      categories: [{ id: 1, name: 'thing' }],
    }),
  );
  const output = newFolder();
  await pack(source, output, { coco });
  const fields = (await fieldsIn(output)).get('one')!;
  expect(fields.png).toBe(MISNAMED.image.toString('latin1'));
  expect(JSON.parse(fields.json!)).toBeTruthy();
});
