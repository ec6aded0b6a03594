/** The option `images`: a varying number of images per sample in one array, which offsets divide. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { encodeNpyImage } from '@shardtool/format';
import { type Batch, type Loader, type LoaderOptions, openDataset, openMixture } from '@shardtool/reader';
import { convert } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { colourOf, countOf, raggedTar } from './ragged-tar.js';
import { randomOf } from './random.js';
import { archive, entry } from './tar-craft.js';

const SIZE = 8;
const base = {
  images: ['img.*'],
  transform: [{ name: 'resize', size: [SIZE, SIZE] }],
  batchSize: 8,
  workers: 1,
  seed: 3,
  fields: ['txt'],
} as const satisfies LoaderOptions;
const file = raggedTar(40);

/** The properties of a row: its key, its text, and the colours of its images. Every image has one colour. */
interface Row {
  readonly key: string;
  readonly text: unknown;
  readonly valid: number;
  readonly colours: readonly (readonly number[])[];
}

function rowsOf({ images, offsets, shape, keys, valid, fields, size }: Batch): Row[] {
  const imageBytes = SIZE * SIZE * 3;
  expect(shape).toEqual([offsets!.at(-1), SIZE, SIZE, 3]);
  expect([offsets!.length, offsets![0]]).toEqual([size + 1, 0]);
  expect(images!.length).toBe(offsets!.at(-1)! * imageBytes);
  return keys.map((key, row) => ({
    key,
    text: fields.txt?.[row],
    valid: valid[row]!,
    colours: Array.from({ length: offsets![row + 1]! - offsets![row]! }, (_, k) => {
      const at = (offsets![row]! + k) * imageBytes;
      const pixels = images!.subarray(at, at + imageBytes);
      const colour = [...pixels.subarray(0, 3)];
      expect(pixels.every((value, i) => value === colour[i % 3])).toBe(true);
      return colour;
    }),
  }));
}

const wanted = (key: string) => {
  const sample = Number(key.slice(1));
  return Array.from({ length: countOf(sample) }, (_, k) => colourOf(sample, k));
};

async function run(options: LoaderOptions = {}, location = file): Promise<{ rows: Row[]; loader: Loader }> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ ...base, ...options });
  const rows: Row[] = [];
  for await (const batch of loader) rows.push(...rowsOf(batch as Batch));
  return { rows, loader };
}

test('all images of a sample are consecutive in the order of their numbers, and a sample may have none', async () => {
  const { rows } = await run();
  expect(rows.length).toBe(40);
  expect(new Set(rows.map(({ key }) => key)).size).toBe(40);
  for (const { key, text, colours } of rows) {
    expect(colours).toEqual(wanted(key));
    expect(text).toBe(`text ${key.slice(1)}`);
  }
});

test('batches do not depend on workers, on the reuse of memory, or on a checksum', async () => {
  const { rows } = await run();
  for (const options of [{ workers: 3 }, { reuse: true }, { checksum: 'never' }, { prefetchBatches: 1 }] as const) {
    expect((await run(options)).rows).toEqual(rows);
  }
});

test('converted shards give the same images as the tar, each checked against its checksum', async () => {
  for (const format of ['tar', 'lmdb', 'msgpack'] as const) {
    const shards = path.join(emptyFolder(), 'shards');
    await convert(file, shards, { workers: 1, format, maxShardSamples: 15 });
    for (const { key, colours } of (await run({ checksum: 'always' }, shards)).rows)
      expect(colours).toEqual(wanted(key));
  }
});

test('ranks share the samples, and a resumed run continues with the next one', async () => {
  const { rows } = await run();
  const parts = await Promise.all([0, 1, 2].map((rank) => run({ rank, worldSize: 3, streams: 192, batchSize: 5 })));
  const valid = parts.flatMap((part) => part.rows).filter((row) => row.valid === 1);
  expect(valid.map(({ key }) => key).sort()).toEqual(rows.map(({ key }) => key).sort());
  for (const { key, colours } of valid) expect(colours).toEqual(wanted(key));

  await using dataset = await openDataset(file);
  const loader = dataset.loader(base);
  for await (const { index } of loader) if (index === 1) break;
  const rest = await run({ state: loader.state(), batchSize: 5, workers: 2 });
  expect(rest.rows).toEqual(rows.slice(16));
});

test('an unbroken run of epochs shows each sample with its images in every epoch', async () => {
  const { rows } = await run({ epochsPerLoop: 3, lastBatch: 'pad', batchSize: 7 });
  const valid = rows.filter((row) => row.valid === 1);
  expect(valid.length).toBe(120);
  for (const { key, colours } of rows) expect(colours).toEqual(wanted(key));
});

test('requested images are delivered in the requested order, and patterns do not match other fields', async () => {
  const named = await run({ images: ['img.1.npy', 'img.0.npy'] });
  for (const { key, colours } of named.rows) {
    const own = wanted(key);
    expect(colours).toEqual([own[1], own[0]].filter((colour) => colour !== undefined));
  }
  const all = await run({ images: ['*'] });
  for (const { key, colours } of all.rows) expect(colours).toEqual(wanted(key));
});

test('each image draws its own random numbers, those of the view with its number', async () => {
  const random = randomOf('ragged images');
  const [width, height] = [40, 30];
  const entries = Array.from({ length: 12 }, (_, i) => {
    const pixels = Uint8Array.from({ length: width * height * 3 }, () => random() * 256);
    const image = Buffer.from(encodeNpyImage(pixels, width, height));
    return [0, 1, 2].map((k) => entry({ name: `s${i}.img.${k}.npy` }, image));
  });
  const tar = path.join(emptyFolder(), 'alike.tar');
  writeFileSync(tar, archive(...entries.flat()));
  const transform = [{ name: 'randomResizedCrop', size: SIZE }, { name: 'randomHorizontalFlip' }] as const;
  await using dataset = await openDataset(tar);
  await using ragged = dataset.loader({ ...base, transform, batchSize: 12, fields: [] });
  await using views = dataset.loader({
    workers: 1,
    seed: 3,
    batchSize: 12,
    image: 'img.0.npy',
    views: { all: { count: 3, transform } },
    fields: [],
  });
  const shown = new Map<string, Buffer>();
  for await (const { views: groups, keys } of views) {
    const { images } = groups.all!;
    keys.forEach((key, row) => {
      for (let view = 0; view < 3; view++) {
        const at = (view * keys.length + row) * SIZE * SIZE * 3;
        shown.set(`${key} ${view}`, Buffer.from(images.slice(at, at + SIZE * SIZE * 3) as Uint8Array));
      }
    });
  }
  let compared = 0;
  for await (const { images, keys, offsets } of ragged) {
    keys.forEach((key, row) => {
      for (let k = 0; k < 3; k++) {
        const at = (offsets![row]! + k) * SIZE * SIZE * 3;
        const own = Buffer.from((images as Uint8Array).slice(at, at + SIZE * SIZE * 3));
        expect(own.equals(shown.get(`${key} ${k}`)!)).toBe(true);
        compared++;
      }
      expect(shown.get(`${key} 0`)!.equals(shown.get(`${key} 1`)!)).toBe(false);
    });
  }
  expect(compared).toBe(36);
});

/** The last image of these samples is truncated within its pixels. */
const BAD = [3, 4, 17, 18, 39];
const damaged = () =>
  raggedTar(40, (bytes, i, k) => (BAD.includes(i) && k === countOf(i) - 1 ? bytes.subarray(0, 500) : bytes));

test('one bad image makes its sample a bad sample, and the error names the field', async () => {
  const message = /sample "s\d+" cannot be used: its field "img\.\d+\.npy": /;
  await expect(run({}, damaged())).rejects.toThrow(message);
});

test('a skipped sample has no images, and the images of all other samples keep their rows', async () => {
  const location = damaged();
  const order = (await run()).rows.map(({ key }) => key);
  for (const workers of [1, 3]) {
    const { rows, loader } = await run({ onBad: 'skip', workers, checksum: 'never' }, location);
    expect(rows.map(({ key }) => key)).toEqual(order);
    for (const { key, colours, valid } of rows) {
      const isBad = BAD.includes(Number(key.slice(1)));
      expect([valid, colours]).toEqual(isBad ? [0, []] : [1, wanted(key)]);
    }
    expect(loader.report().bad).toBe(BAD.length);
  }
});

test('a replaced sample brings its own number of images, and no other row changes', async () => {
  const location = damaged();
  const options = { onBad: 'replace', shuffleUnit: 'chunk', streams: 1, blockSamples: 20, checksum: 'never' } as const;
  const [one, three] = await Promise.all([1, 3].map((workers) => run({ ...options, workers }, location)));
  expect(one!.rows).toEqual(three!.rows);
  for (const { key, colours, valid, text } of one!.rows) {
    expect(BAD).not.toContain(Number(key.slice(1)));
    expect([valid, colours, text]).toEqual([1, wanted(key), `text ${key.slice(1)}`]);
  }
  expect(one!.loader.report().bad).toBe(BAD.length);
});

test('a sample with more images than maxImages is a bad sample, also as the replacement of another', async () => {
  await expect(run({ maxImages: 4 })).rejects.toThrow(
    'sample "s5" cannot be used: it has 12 images, more than the option maxImages allows (4): raise the option maxImages. Set onBad',
  );
  const skipped = await run({ maxImages: 4, onBad: 'skip' });
  for (const { key, colours } of skipped.rows) expect(colours).toEqual(key === 's5' ? [] : wanted(key));
  const options = { shuffleUnit: 'chunk', streams: 1, blockSamples: 20 } as const;
  const replaced = await run({ maxImages: 2, onBad: 'replace', ...options });
  for (const { key, colours } of replaced.rows) {
    expect(colours.length).toBeLessThanOrEqual(2);
    expect(colours).toEqual(wanted(key));
  }
});

test('a repeated row that pads a batch is replaced like any other, with its images and fields', async () => {
  const location = raggedTar(13);
  const options = { maxImages: 3, onBad: 'replace', shuffleUnit: 'chunk', blockSamples: 13, lastBatch: 'pad' } as const;
  let padded = 0;
  for (const seed of [0, 1, 2, 3]) {
    for (const rank of [0, 1]) {
      const { rows } = await run({ ...options, seed, rank, worldSize: 2, streams: 2, batchSize: 6 }, location);
      for (const { key, colours, text, valid } of rows) {
        expect([colours, text]).toEqual([wanted(key), `text ${key.slice(1)}`]);
        if (valid === 0) padded++;
      }
    }
  }
  expect(padded).toBeGreaterThan(10);
});

test('lists of images in Parquet are the images of their sample', async () => {
  await using dataset = await openDataset('test/fixtures/parquet/lists/snappy-1.parquet');
  await using loader = dataset.loader({ ...base, images: ['jpg', 'png', 'images.*'], fields: [], shuffle: false });
  const counts: number[] = [];
  for await (const { offsets, size } of loader)
    for (let row = 0; row < size; row++) counts.push(offsets![row + 1]! - offsets![row]!);
  const expected: number[] = [];
  for await (const { fields } of dataset.samples())
    expected.push(Object.keys(fields).filter((name) => name !== 'cls').length);
  expect(counts).toEqual(expected);
  expect(new Set(counts).size).toBeGreaterThan(2);
});

test('datasets of a mixture may differ in their numbers of images', async () => {
  const other = raggedTar(9);
  await using mixture = await openMixture([
    { dataset: file, weight: 1 },
    { dataset: other, weight: 1 },
  ]);
  await using loader = mixture.loader({ ...base, samplesPerEpoch: 40 });
  const sources = new Set<number>();
  for await (const batch of loader) {
    for (const { key, colours } of rowsOf(batch as Batch)) expect(colours).toEqual(wanted(key));
    for (const source of batch.datasetIndex!) sources.add(source);
  }
  expect([...sources].sort()).toEqual([0, 1]);
});

test('the transform of a later epoch may set another size', async () => {
  await using dataset = await openDataset(file);
  const schedule = [{ epoch: 1, transform: [{ name: 'resize', size: [4, 4] }] }] as const;
  await using loader = dataset.loader({ ...base, schedule, epochsPerLoop: 2 });
  const sizes = new Set<string>();
  for await (const { epoch, shape, images, offsets } of loader) {
    sizes.add(`${epoch} ${shape!.slice(1)}`);
    expect(images!.length).toBe(offsets!.at(-1)! * shape![1] * shape![2] * 3);
  }
  expect([...sizes].sort()).toEqual(['0 8,8,3', '1 4,4,3']);
});

test.each<[LoaderOptions, string]>([
  [{ transform: 'raw' }, 'transform does not work with images'],
  [{ collate: 'list' }, 'collate does not work with images'],
  [{ masks: ['img.0.npy'] }, 'masks does not work with images'],
  [{ extraImages: ['img.0.npy'] }, 'extraImages does not work with images'],
  [{ annotations: { boxes: { field: 'json', path: 'b' } } }, 'annotations does not work with images'],
  [{ mix: { name: 'mixup', alpha: 1 } }, 'mix does not work with images'],
  [{ image: 'img.0.npy' }, 'image does not work with images'],
  [{ customSteps: { batch: { module: './steps.mjs' } } }, 'customSteps does not work with images'],
  [{ views: { a: { count: 2, transform: base.transform } } }, 'views does not work with images'],
  [{ images: [], maxImages: 3, image: 'img.0.npy' }, 'maxImages limits the images of a sample: add images'],
  [{ images: ['img.1.npz'] }, 'no field of'],
  [{ images: ['photo.*'] }, 'matches "photo.*": its images are img.0.npy, img.1.npy'],
  [{ transform: undefined }, 'The images differ in size'],
  [{ image: false, transform: undefined }, 'The option images is for images, and image is false'],
])('with %o the error names the option', async (options, message) => {
  await expect(run(options)).rejects.toThrow(message);
});
