import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { encodeNpyImage } from '@shardtool/format';
import { type Batch, CustomStepError, type LoaderOptions, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import * as withBad from './bad-samples.js';
import { emptyFolder, packedSmall } from './datasets.js';
import { HEIGHT, maskedTar, palettePng, WIDTH } from './masked-tar.js';
import { archive, entry } from './tar-craft.js';

/** All batches of an epoch, processed one by one. */
async function looked<Seen>(location: string, options: LoaderOptions, look: (batch: Batch) => Seen): Promise<Seen[]> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ workers: 1, batchSize: 4, ...options });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  return seen;
}

const masked = maskedTar(10);

test('images and masks have the same crop, flips and rotation, and masks keep their values', async () => {
  const transform = [
    { name: 'randomResizedCrop', size: 24, scale: [0.5, 1] },
    { name: 'randomHorizontalFlip' },
    { name: 'randomVerticalFlip' },
    { name: 'randomRotation', degrees: [90, 90] },
  ] as const;
  const options = { transform, masks: ['seg.png', 'mask.npy'], extraImages: ['depth.npy'] };
  const batches = await looked(masked, options, ({ images, masks, extraImages, size, fields }) => {
    let [off, inverted] = [0, 0];
    for (let at = 0; at < size * 24 * 24; at++) {
      // Within a square of 8 pixels red is exact; at its edges the image is interpolated.
      if (Math.abs(images![at * 3]! / 10 - masks['seg.png']![at]!) > 0.5) off++;
      for (const channel of [0, 1, 2]) {
        if (Math.abs(images![at * 3 + channel]! + extraImages['depth.npy']![at * 3 + channel]! - 255) > 1) inverted++;
      }
    }
    const values = new Set(masks['seg.png']);
    const alike = Buffer.compare(masks['seg.png']!, masks['mask.npy']!) === 0;
    return { off: off / (size * 24 * 24), inverted, most: Math.max(...values), alike, fields: Object.keys(fields) };
  });
  for (const { off, inverted, most, alike, fields } of batches) {
    expect(off).toBeLessThan(0.35);
    expect(inverted).toBe(0);
    expect(most).toBeLessThan(20);
    expect(alike).toBe(true);
    expect(fields).toEqual(['box.npy']);
  }
});

test('a NumPy array is delivered as an array', async () => {
  const [first] = await looked(masked, { shuffle: false, batchSize: 10 }, ({ fields, shape }) => ({
    boxes: fields['box.npy'],
    shape,
  }));
  expect(first!.shape).toEqual([10, HEIGHT, WIDTH, 3]);
  expect(first!.boxes![3]).toEqual({ dtype: '<f4', shape: [2], fortranOrder: false, data: Float32Array.of(3, 0.5) });
});

test('a mask of another size, or an invalid one, is a bad sample with a clear reason', async () => {
  const file = path.join(emptyFolder(), 'bad.tar');
  const image = Buffer.from(encodeNpyImage(new Uint8Array(4 * 4 * 3), 4, 4));
  const parts = [entry({ name: 'a.npy' }, image), entry({ name: 'a.seg.png' }, palettePng(new Uint8Array(6), 3, 2))];
  writeFileSync(file, archive(...parts, entry({ name: 'b.npy' }, image)));
  await expect(looked(file, { masks: ['seg.png'], keys: ['a'] }, () => 0)).rejects.toThrow(
    /"seg.png": it is 3x2 pixels, but the image is 4x4/,
  );
  await expect(looked(file, { masks: ['seg.png'], keys: ['b'] }, () => 0)).rejects.toThrow(/it has no field "seg.png"/);
  await expect(looked(file, { masks: ['other.png'] }, () => 0)).rejects.toThrow(/masks: no sample has "other.png"/);
  await expect(looked(file, { masks: ['seg.png'], collate: 'list' }, () => 0)).rejects.toThrow(
    /option masks is for batches whose images are decoded and stacked: remove masks, or collate 'list'/,
  );
});

test('uncompressed images give the same pixels as PNGs of the same images', async () => {
  const npy = await packedSmall({ samples: 12 }, { imageFormat: 'npy', resize: 24 });
  const png = await packedSmall({ samples: 12 }, { imageFormat: 'png', resize: 24 });
  const options = { transform: 'train224', batchSize: 12 } as const;
  const pixels = (batch: Batch) => ({
    keys: [...batch.keys],
    pixels: Buffer.from(batch.images as Uint8Array).toString('base64'),
  });
  const [a] = await looked(npy, options, pixels);
  const [b] = await looked(png, options, pixels);
  expect(a!.keys).toEqual(b!.keys);
  expect(a!.pixels === b!.pixels).toBe(true);
  await using dataset = await openDataset(npy);
  expect(dataset.fields).toEqual(['cls', 'npy']);
  const { width } = await dataset.files.index(0);
  expect(width[0]).toBeGreaterThanOrEqual(24);
});

/** A module with custom steps, for the workers. */
function stepModule(source: string): string {
  const folder = path.join(emptyFolder(), 'own');
  mkdirSync(folder);
  const file = path.join(folder, 'steps.mjs');
  writeFileSync(file, source);
  return file;
}

const own = stepModule(`
export function keep(fields, { number, options }) {
  if (number % 5 === options.dropped) return null;
  if (fields.cls === undefined && fields['box.npy'] === undefined) throw new Error('no fields');
  return {};
}
export function mark(pixels, { number, shape, random }) {
  pixels[0] = number;
  pixels[1] = Math.floor(random() * 256);
  pixels[2] = shape[0];
}
export async function relabel({ images, labels, shape }) {
  await null;
  labels.fill(7);
  images[3] = shape[0];
}
export function fail(pixels, { number }) {
  if (number === 6) throw new TypeError('seven is not allowed');
}
export const notAFunction = 3;
`);
const plain = [{ name: 'resize', size: [8, 8] }] as const;

test('custom steps run on fields, pixels and batches, with random numbers of the sample', async () => {
  const steps = {
    fields: { module: own, export: 'keep', options: { dropped: -1 } },
    pixels: { module: own, export: 'mark' },
    batch: { module: own, export: 'relabel' },
  };
  const look = ({ images, indices: numbers, labels, size }: Batch) => ({
    labels: [...labels],
    fourth: images![3],
    size,
    rows: [...numbers].map((number, row) => [number, ...images!.slice(row * 192, row * 192 + 3)]),
  });
  const options = { transform: plain, customSteps: steps, seed: 3 };
  const seen = await looked(masked, { ...options, workers: 1 }, look);
  for (const { labels, rows, fourth, size } of seen) {
    expect(labels).toEqual(labels.map(() => 7));
    expect(fourth).toBe(size);
    for (const [number, mark, , height] of rows) expect([mark, height]).toEqual([number, 8]);
  }
  expect(new Set(seen.flatMap(({ rows }) => rows.map((row) => row[2]))).size).toBeGreaterThan(5);
  expect(await looked(masked, { ...options, workers: 3 }, look)).toEqual(seen);
});

test('a sample that a custom step drops is replaced with the next one of its block, and counted', async () => {
  const steps = { fields: { module: own, export: 'keep', options: { dropped: 2 } } };
  await using dataset = await openDataset(masked);
  await using loader = dataset.loader({
    transform: plain,
    customSteps: steps,
    batchSize: 5,
    workers: 2,
    shuffle: false,
  });
  const numbers: number[] = [];
  for await (const batch of loader) numbers.push(...batch.indices);
  expect(numbers).toEqual([0, 1, 3, 3, 4, 5, 6, 8, 8, 9]);
  expect(loader.report()).toMatchObject({ dropped: 2, bad: 0 });
});

test('an error of a custom step is thrown with the key and the stack, for any value of onBad', async () => {
  const steps = { pixels: { module: own, export: 'fail' } };
  const run = looked(masked, { transform: plain, customSteps: steps, onBad: 'skip' }, () => 0);
  await expect(run).rejects.toBeInstanceOf(CustomStepError);
  await expect(run).rejects.toThrow(
    /masked\.tar: sample "s6": the step "pixels" threw: seven is not allowed\nTypeError[\s\S]*steps\.mjs:\d+/,
  );
});

test('the error for a missing custom step names the module and its exports', async () => {
  const missing = (step: object) =>
    looked(masked, { transform: plain, customSteps: { pixels: step as never } }, () => 0);
  await expect(missing({ module: own, export: 'notAFunction' })).rejects.toThrow(/"notAFunction".*exports.*keep/s);
  await expect(missing({ module: './nowhere.mjs' })).rejects.toThrow(/cannot be loaded from file:.*nowhere\.mjs/);
  await expect(missing({})).rejects.toThrow(/option customSteps is invalid: .*module/);
});

test.each(['uint8', 'float32'] as const)(
  'mixup of %s is the weighted sum with the row before, including labels',
  async (dtype) => {
    const transform = [...plain, { name: 'toDtype', dtype }] as const;
    const options = { transform, seed: 5, batchSize: 5 };
    const look = ({ images, labels, mix }: Batch) => ({ images: Float64Array.from(images!), labels: [...labels], mix });
    const unmixed = await looked(masked, options, look);
    const mixed = await looked(masked, { ...options, mix: { name: 'mixup', alpha: 0.4 } }, look);
    for (const [i, { images, labels, mix }] of mixed.entries()) {
      const before = unmixed[i]!;
      const { weight, otherLabels } = mix!;
      expect(mix!.name).toBe('mixup');
      expect(labels).toEqual(before.labels);
      expect([...otherLabels]).toEqual(labels.map((_, row) => labels.at(row - 1)));
      let largest = 0;
      for (let at = 0; at < images.length; at++) {
        const other = before.images.at(at - 192)!;
        largest = Math.max(largest, Math.abs(images[at]! - (weight * before.images[at]! + (1 - weight) * other)));
      }
      expect(largest).toBeLessThanOrEqual(dtype === 'uint8' ? 1 : 1e-3);
    }
    expect(new Set(mixed.map(({ mix }) => mix!.weight)).size).toBe(mixed.length);
  },
);

test('cutmix copies a rectangle of the row before, and its weight is the remaining area', async () => {
  for (const layout of ['nhwc', 'nchw'] as const) {
    const transform = [
      { name: 'resize', size: [16, 16] },
      { name: 'layout', layout },
    ] as const;
    const options = { transform, seed: 9, batchSize: 5, epoch: 2 };
    const look = ({ images, mix }: Batch) => ({ images: Uint8Array.from(images!), mix });
    const unmixed = await looked(masked, options, look);
    const mixed = await looked(masked, { ...options, mix: [{ name: 'cutmix' }], workers: 3 }, look);
    for (const [i, { images, mix }] of mixed.entries()) {
      const before = unmixed[i]!.images;
      let [own, other] = [0, 0];
      for (let at = 0; at < images.length; at++) {
        if (images[at] === before[at]) own++;
        else if (images[at] === before.at(at - 768)) other++;
      }
      expect(own + other).toBe(images.length);
      // Some pixels of the two rows are the same.
      expect(other / images.length).toBeLessThanOrEqual(1 - mix!.weight + 1e-9);
    }
  }
});

test.each(['batch', 'pair', 'elem'] as const)(
  'timmMixup for each %s mixes with row n - 1 - i, and its soft labels have the same weights',
  async (mode) => {
    const options: LoaderOptions = {
      transform: [...plain, { name: 'toDtype', dtype: 'float32' }],
      batchSize: 7,
      fields: [],
    };
    const look = ({ images, labels, mix, softLabels, size }: Batch) => ({
      ...{ images: Float32Array.from(images!), labels: [...labels], mix, soft: softLabels && [...softLabels], size },
    });
    const unmixed = await looked(masked, options, look);
    const mix = { ...({ name: 'timmMixup', mixupAlpha: 0.8, cutmixAlpha: 1 } as const), mode, numClasses: 9 };
    const mixed = await looked(masked, { ...options, mix, workers: 3 }, look);
    expect(await looked(masked, { ...options, mix, workers: 1 }, look)).toEqual(mixed);
    for (const [i, { images, labels, mix, soft, size }] of mixed.entries()) {
      const before = unmixed[i]!.images;
      const bytes = images.length / size;
      for (let row = 0; row < size; row++) {
        const other = size - 1 - row;
        const weight = mix!.weights[row]!;
        expect(mix!.otherLabels[row]).toBe(labels[other]);
        let kept = 0;
        let isMixup = true;
        let isCutmix = true;
        for (let at = 0; at < bytes; at++) {
          const [a, b] = [before[row * bytes + at]!, before[other * bytes + at]!];
          const value = images[row * bytes + at]!;
          isMixup &&= Math.abs(value - (weight * a + (1 - weight) * b)) < 0.01;
          isCutmix &&= value === a || value === b;
          if (value === a) kept++;
        }
        expect(isMixup || (isCutmix && kept / bytes >= weight - 1e-9)).toBe(true);
        const expected = Array.from(
          { length: 9 },
          (_, c) => 0.1 / 9 + 0.9 * (Number(c === labels[row]) * weight + Number(c === labels[other]) * (1 - weight)),
        );
        for (const [c, value] of expected.entries()) expect(soft![row * 9 + c]).toBeCloseTo(value, 5);
      }
    }
  },
);

test.each(['mixup', 'cutmix', 'timmMixup'] as const)(
  '%s leaves a row unchanged if its other row is a bad sample that was skipped',
  async (name) => {
    const options = { ...withBad.base, onBad: 'skip' as const };
    const plain = await loop(options, withBad.shards);
    const mixed = await loop({ ...options, mix: { name, numClasses: 2, labelSmoothing: 0 } }, withBad.shards);
    let alone = 0;
    for (const [i, { images, keys, labels, valid, mix, softLabels }] of mixed.entries()) {
      expect(keys).toEqual(plain[i]!.keys);
      const length = images!.length / keys.length;
      for (const row of keys.keys()) {
        const other = name === 'timmMixup' ? keys.length - 1 - row : (row + keys.length - 1) % keys.length;
        const part = [row * length, (row + 1) * length] as const;
        const isSame = Buffer.from(images!.subarray(...part)).equals(Buffer.from(plain[i]!.images!.subarray(...part)));
        if (valid[row] === 1 && valid[other] === 1) expect(mix!.otherLabels[row]).toBe(labels[other]);
        if (valid[row] === 1 && valid[other] === 1 && mix!.weights[row]! < 0.9) expect(isSame).toBe(false);
        if (valid[row] === 0 || valid[other] === 1) continue;
        alone++;
        expect(isSame).toBe(true);
        expect(mix!.otherLabels[row]).toBe(labels[row]);
        expect(softLabels![2 * row + labels[row]!]).toBeCloseTo(1, 6);
      }
    }
    expect(alone).toBeGreaterThan(2);
  },
);

async function loop(options: LoaderOptions, location: string): Promise<Batch[]> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader(options);
  const batches: Batch[] = [];
  for await (const batch of loader) batches.push(batch);
  return batches;
}

test('mixing rejects masks and an unknown mix with clear errors', async () => {
  const mix = { name: 'mixup' } as const;
  await expect(looked(masked, { transform: plain, mix, masks: ['seg.png'] }, () => 0)).rejects.toThrow(
    /cannot mix masks and further images: remove masks and extraImages/,
  );
  await expect(looked(masked, { transform: plain, mix: { name: 'mixdown' } as never }, () => 0)).rejects.toThrow(
    /mixup.*cutmix/,
  );
});
