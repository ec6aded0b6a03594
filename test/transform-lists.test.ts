import { encodeNpyImage } from '@shardtool/format';
import { expect, test } from 'vitest';
import type { StepInput } from '#reader/transform/transform';
import { fixture } from './codec-workbench.js';
import { GuardedDecoder, sample } from './decoder-workbench.js';
import { floatOfHalf } from './half-floats.js';

const photo = fixture('codec/420.jpg');
const mean = [0.485, 0.456, 0.406] as const;
const std = [0.229, 0.224, 0.225] as const;
const normalize: StepInput = { name: 'normalize', mean, std };
const SIDE = 40;
const effects: readonly StepInput[] = [
  { name: 'randomResizedCrop', size: SIDE },
  { name: 'randomVerticalFlip' },
  { name: 'colorJitter', brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1 },
  { name: 'randomRotation', degrees: 20, interpolation: 'bilinear', fill: [10, 20, 30] },
  { name: 'randomGrayscale', p: 0.3 },
  { name: 'gaussianBlur', kernelSize: 5 },
  { name: 'randomErasing', value: [200, 0, 5] },
  { name: 'randomHorizontalFlip' },
];

test('a list with every step gives the same pixels in each dtype and layout', async () => {
  const bytes = await GuardedDecoder.open(effects);
  const planar = await GuardedDecoder.open([...effects, { name: 'layout', layout: 'nchw' }]);
  const floats = await GuardedDecoder.open([...effects, normalize]);
  const halves = await GuardedDecoder.open([...effects, normalize, { name: 'toDtype', dtype: 'float16' }]);
  for (let number = 0; number < 12; number++) {
    const identity = sample({ number });
    const pixels = await bytes.decode(photo, identity);
    const planes = await planar.decode(photo, identity);
    const values = new Float32Array((await floats.decode(photo, identity)).buffer);
    const bits = new Uint16Array((await halves.decode(photo, identity)).buffer);
    let wrong = 0;
    for (let at = 0; at < SIDE * SIDE * 3; at++) {
      const channel = Math.floor(at / SIDE ** 2);
      const value = pixels[(at % SIDE ** 2) * 3 + channel]!;
      const exact = (value / 255 - mean[channel]!) / std[channel]!;
      if (planes[at] !== value || Math.abs(values[at]! - exact) > 1e-4) wrong++;
      // Half-precision numbers up to 4 have steps of 1/512.
      if (Math.abs(floatOfHalf(bits[at]!) - exact) > 1 / 1000) wrong++;
    }
    expect(wrong, `sample ${number}`).toBe(0);
  }
});

test('a sample has the same pixels whichever samples were decoded before', async () => {
  const [one, other] = [await GuardedDecoder.open(effects), await GuardedDecoder.open(effects)];
  for (let number = 0; number < 6; number++) await one.decode(photo, sample({ number }));
  const identity = sample({ epoch: 2, number: 41 });
  expect(Buffer.compare(await one.decode(photo, identity), await other.decode(photo, identity))).toBe(0);
});

test('erasing after normalize writes the given value, and noise is normally distributed', async () => {
  const crop: StepInput = { name: 'centerCrop', size: 160 };
  const erasing = (value: number | 'random'): StepInput => ({
    name: 'randomErasing',
    p: 1,
    scale: [0.3, 0.3],
    ratio: [1, 1],
    value,
  });
  const pixels = 160 * 160;
  const marked = await GuardedDecoder.open([crop, normalize, erasing(7)]);
  const values = new Float32Array((await marked.decode(photo)).buffer);
  const erased = values.reduce((count, value) => count + (value === 7 ? 1 : 0), 0);
  expect(erased).toBe(3 * Math.round(Math.sqrt(0.3 * pixels)) ** 2);

  const noisy = await GuardedDecoder.open([crop, normalize, erasing('random')]);
  const noise = new Float32Array((await noisy.decode(photo)).buffer).filter((_, i) => values[i] === 7);
  const average = noise.reduce((sum, value) => sum + value, 0) / noise.length;
  const variance = noise.reduce((sum, value) => sum + (value - average) ** 2, 0) / noise.length;
  expect(Math.abs(average)).toBeLessThan(0.02);
  expect(Math.abs(variance - 1)).toBeLessThan(0.03);
  expect(new Set(noise).size).toBeGreaterThan(noise.length * 0.99);
});

test('no memory outside a row and the scratch changes, for any size', async () => {
  for (const size of [1, 2, 3, 5, 17, 33] as const) {
    const decoder = await GuardedDecoder.open([
      { name: 'resize', size: [size, size + 2] },
      { name: 'randomRotation', degrees: 180 },
      { name: 'colorJitter', brightness: 1, contrast: 1, saturation: 1, hue: 0.5 },
      {
        name: 'gaussianBlur',
        kernelSize: size > 2 ? [3, 5] : 1,
      },
      { name: 'randomRotation', degrees: 180, interpolation: 'bilinear' },
      { name: 'grayscale' },
      { name: 'randomErasing', p: 1 },
    ]);
    for (let number = 0; number < 4; number++) {
      expect(await decoder.decode(photo, sample({ number }))).toHaveLength(size * (size + 2) * 3);
    }
  }
});

test('consecutive uncompressed images of equal and different sizes are decoded correctly', async () => {
  const decoder = await GuardedDecoder.open([{ name: 'centerCrop', size: 2 }]);
  const image = (width: number, height: number, value: number) =>
    encodeNpyImage(new Uint8Array(width * height * 3).fill(value), width, height);
  for (const [width, height, value] of [
    [4, 4, 1],
    [4, 4, 2],
    [5, 3, 3],
    [4, 4, 4],
  ] as const) {
    expect([...(await decoder.decode(image(width, height, value)))]).toEqual(Array(12).fill(value));
  }
  await expect(async () => decoder.decode(image(4, 4, 5).subarray(0, -1))).rejects.toThrow(
    /ends 1 bytes before its last pixel/,
  );
  expect([...(await decoder.decode(image(4, 4, 6)))]).toEqual(Array(12).fill(6));
});
