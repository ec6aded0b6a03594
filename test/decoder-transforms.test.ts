import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { centerCropRect, randomCropRect, randomResizedCropRect, resizedSize } from '#reader/transform/crops';
import { SampleRandom } from '#reader/transform/random';
import type { StepInput } from '#reader/transform/transform';
import { dice, difference, fixture } from './codec-workbench.js';
import { GuardedDecoder, sample } from './decoder-workbench.js';
import { resizeReference } from './kernels-reference.js';

const photo = fixture('codec/420.jpg');
const seed = 7;

interface Image {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

const whole = await (await GuardedDecoder.open([])).decodeToArray(photo);

test('resize and centerCrop give the same pixels as Pillow and torchvision', async () => {
  const decoder = await GuardedDecoder.open([
    { name: 'resize', size: 64 },
    { name: 'centerCrop', size: 56 },
  ]);
  const reference = readFileSync(new URL('./fixtures/codec/420-resize64-crop56.rgb', import.meta.url));
  const { largest, mean } = difference(await decoder.decode(photo), reference);
  expect(largest).toBeLessThanOrEqual(2);
  expect(mean).toBeLessThan(0.3);
});

/** Lists that become one pass, and lists that need several. None reduces so much that the decoder would do part of it. */
const LISTS: readonly (readonly StepInput[])[] = [
  [{ name: 'randomResizedCrop', size: 40 }, { name: 'randomHorizontalFlip' }],
  [
    { name: 'randomHorizontalFlip', p: 1 },
    { name: 'randomResizedCrop', size: [30, 50] },
  ],
  [
    { name: 'resize', size: 50 },
    { name: 'randomCrop', size: 40 },
    { name: 'randomHorizontalFlip', p: 1 },
  ],
  [
    { name: 'resize', size: [30, 40] },
    { name: 'randomResizedCrop', size: 50, scale: [0.3, 0.6] },
  ],
  [{ name: 'randomHorizontalFlip' }, { name: 'randomCrop', size: 60 }, { name: 'randomHorizontalFlip' }],
  [
    { name: 'randomCrop', size: [90, 120], padding: [5, 10] },
    { name: 'resize', size: 45 },
    { name: 'centerCrop', size: 45 },
  ],
  [
    { name: 'centerCrop', size: 160 },
    { name: 'randomHorizontalFlip', p: 1 },
  ],
  [
    { name: 'randomCrop', size: 150, padIfNeeded: true, fill: 200 },
    { name: 'randomCrop', size: 90 },
  ],
  [
    { name: 'resize', size: 40, maxSize: 45 },
    { name: 'centerCrop', size: 50 },
  ],
  [{ name: 'randomCrop', size: 8, padding: 200, fill: 9 }],
];

test.each(LISTS.map((list) => [list.map(({ name }) => name).join(', '), list] as const))(
  '%s gives the same as its steps one after the other',
  async (_, list) => {
    const decoder = await GuardedDecoder.open(list, { seeds: [seed] });
    for (let number = 0; number < 12; number++) {
      const expected = stepByStep(whole, list, new SampleRandom(seed).start(3, number, 0));
      const image = await decoder.decodeToArray(photo, sample({ epoch: 3, number }));
      expect({ width: image.width, height: image.height }).toEqual({ width: expected.width, height: expected.height });
      expect(difference(image.pixels, expected.pixels).largest, `${number}`).toBeLessThanOrEqual(2);
    }
  },
);

test('a list gives the same pixels in each layout: planar bytes and normalized floats', async () => {
  const list: readonly StepInput[] = [{ name: 'randomResizedCrop', size: [24, 33] }, { name: 'randomHorizontalFlip' }];
  const mean = [0.485, 0.456, 0.406] as const;
  const std = [0.229, 0.224, 0.225] as const;
  const bytes = await (await GuardedDecoder.open(list)).decode(photo);
  const planar = await (await GuardedDecoder.open([...list, { name: 'layout', layout: 'nchw' }])).decode(photo);
  const normalize: StepInput = { name: 'normalize', mean: [...mean], std: [...std] };
  const floats = new Float32Array((await (await GuardedDecoder.open([...list, normalize])).decode(photo)).buffer);
  for (let pixel = 0; pixel < 24 * 33; pixel++) {
    for (let channel = 0; channel < 3; channel++) {
      const value = bytes[pixel * 3 + channel]!;
      expect(planar[channel * 24 * 33 + pixel]).toBe(value);
      expect(floats[channel * 24 * 33 + pixel]).toBeCloseTo((value / 255 - mean[channel]!) / std[channel]!, 4);
    }
  }
});

test.each(['float32', 'float16'] as const)(
  '%s gives the same pixels as interleaved and as planar output, erased parts included',
  async (dtype) => {
    const Values = dtype === 'float32' ? Uint32Array : Uint16Array;
    const list: readonly StepInput[] = [
      { name: 'randomResizedCrop', size: [23, 33] },
      { name: 'toDtype', dtype, scale: true },
      { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
      { name: 'randomErasing', p: 1, value: 'random' },
      { name: 'randomErasing', p: 1, value: [0.5, -1, 2] },
    ];
    const decoded = async (layout: 'nhwc' | 'nchw') => {
      const decoder = await GuardedDecoder.open([...list, { name: 'layout', layout }]);
      return new Values(Uint8Array.from(await decoder.decode(photo)).buffer);
    };
    const [planes, pixels] = [await decoded('nchw'), await decoded('nhwc')];
    expect(new Set(planes).size).toBeGreaterThan(100);
    const turned = pixels.map((_, at) => planes[(at % 3) * 23 * 33 + Math.floor(at / 3)]!);
    expect(Buffer.compare(Buffer.from(pixels.buffer), Buffer.from(turned.buffer))).toBe(0);
  },
);

test('a sample has the same pixels whichever samples were decoded before, and differs by epoch and occurrence', async () => {
  const list: readonly StepInput[] = [{ name: 'randomResizedCrop', size: 32 }];
  const [one, other] = [await GuardedDecoder.open(list), await GuardedDecoder.open(list)];
  const identity = sample({ epoch: 2, number: 41 });
  for (let number = 0; number < 5; number++) await one.decode(photo, sample({ number }));
  const pixels = await one.decode(photo, identity);
  expect(Buffer.compare(await other.decode(photo, identity), pixels)).toBe(0);
  for (const changed of [{ epoch: 3 }, { number: 42 }, { occurrence: 1 }]) {
    expect(Buffer.compare(await other.decode(photo, { ...identity, ...changed }), pixels)).not.toBe(0);
  }
});

test('images of any size can be resized to any size from 1 to hundreds of pixels', async () => {
  const random = dice(3);
  const images = ['1x1', '1x40', '40x1', '7x5', '33x2', 'gray', 'cmyk'].map((name) => fixture(`codec/${name}.jpg`));
  for (let i = 0; i < 12; i++) {
    const decoder = await GuardedDecoder.open([
      { name: 'randomResizedCrop', size: [1 + random(300), 1 + random(300)] },
    ]);
    for (const image of images) await decoder.decode(image, sample({ number: i }));
  }
});

/** The steps one by one, each on the result of the one before, as torchvision runs them. */
function stepByStep(image: Image, list: readonly StepInput[], random: SampleRandom): Image {
  let now = image;
  for (const step of list) {
    if (step.name === 'randomHorizontalFlip') {
      if (random.next() < (step.p ?? 0.5)) now = mirrored(now);
    } else if (step.name === 'centerCrop') now = cropped(now, centerCropRect(now, square(step.size)), 0);
    else if (step.name === 'randomCrop') {
      const [x, y] = Array.isArray(step.padding) ? step.padding : [step.padding ?? 0, step.padding ?? 0];
      const padding = { left: x!, right: x!, top: y!, bottom: y! };
      const rect = randomCropRect(now, square(step.size), padding, step.padIfNeeded ?? false, random)!;
      now = cropped(now, rect, step.fill ?? 0);
    } else if (step.name === 'randomResizedCrop') {
      const rect = randomResizedCropRect(now, step.scale ?? [0.08, 1], step.ratio ?? [3 / 4, 4 / 3], random);
      now = resized(cropped(now, rect, 0), square(step.size));
    } else if (step.name === 'resize') now = resized(now, resizedSize(now, step.size, step.maxSize));
  }
  return now;
}

function square(size: number | readonly [number, number]) {
  return typeof size === 'number' ? { width: size, height: size } : { width: size[1], height: size[0] };
}

function resized({ pixels, ...from }: Image, { width, height }: { width: number; height: number }): Image {
  const x = { source: from.width, output: width, first: 0, count: width, flip: false };
  const y = { source: from.height, output: height, first: 0, count: height, flip: false };
  return { width, height, pixels: resizeReference(pixels, from.width, from.height, x, y) };
}

function mirrored(image: Image): Image {
  return mapped(image, image, (x, y) => [image.width - 1 - x, y], 0);
}

function cropped(image: Image, rect: { x: number; y: number; width: number; height: number }, fill: number): Image {
  return mapped(image, rect, (x, y) => [x + rect.x, y + rect.y], fill);
}

/** Pixel (x, y) of the result is pixel `from(x, y)` of the image, or `fill` outside the image. */
function mapped(
  image: Image,
  { width, height }: { width: number; height: number },
  from: (x: number, y: number) => [number, number],
  fill: number,
): Image {
  const pixels = new Uint8Array(width * height * 3).fill(fill);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [column, row] = from(x, y);
      if (column < 0 || row < 0 || column >= image.width || row >= image.height) continue;
      const at = (row * image.width + column) * 3;
      pixels.set(image.pixels.subarray(at, at + 3), (y * width + x) * 3);
    }
  }
  return { width, height, pixels };
}
