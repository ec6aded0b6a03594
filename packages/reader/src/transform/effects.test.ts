import { expect, test } from 'vitest';
import type { PixelDtype } from '../codec/pixel-format.js';
import type { Effect } from './effects.js';
import { planSample } from './plan.js';
import type { Random } from './random.js';
import { rotatedSize, rotationOf } from './rotation.js';
import { hsvTables } from './steps/pixels/noise.js';
import { compileTransform, type StepInput } from './transform.js';

/** A source of these numbers in order, which counts them. */
class Numbers implements Random {
  drawn = 0;
  readonly #numbers: readonly number[];

  constructor(...numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  next(): number {
    return this.#numbers[this.drawn++ % this.#numbers.length]!;
  }
}

function effectsOf(step: StepInput, random: Random, width = 100, height = 80): readonly Effect[] {
  const { passes } = planSample(compileTransform([step]), width, height, random);
  return passes.flatMap(({ effects }) => effects ?? []);
}

test('a rotation draws its angle, and rotates counter-clockwise', () => {
  const random = new Numbers(0.75);
  const [effect] = effectsOf({ name: 'randomRotation', degrees: 180 }, random);
  expect(effect).toMatchObject({ kind: 'rotate', size: { width: 100, height: 80 }, fill: [0, 0, 0] });
  const { matrix } = effect as Extract<Effect, { readonly kind: 'rotate' }>;
  // A pixel to the right of the center comes from below the center.
  expect(matrix.map((value) => value + 0)).toEqual([0, -1, 0, 1, 0, 0]);
  expect(random.drawn).toBe(1);
});

test('multiples of 90 degrees are exact, and a rotated rectangle has the size of its bounding box', () => {
  expect(rotationOf(360, [0, 0]).map((value) => value + 0)).toEqual([1, 0, 0, 0, 1, 0]);
  expect(rotatedSize(rotationOf(90, [0, 0]), { width: 30, height: 20 })).toEqual({ width: 20, height: 30 });
  for (const degrees of [90, -90, 270, 450]) {
    expect(rotatedSize(rotationOf(degrees, [0, 0]), { width: 40, height: 33 })).toEqual({ width: 33, height: 40 });
  }
  for (const degrees of [0, 180]) {
    expect(rotatedSize(rotationOf(degrees, [0, 0]), { width: 40, height: 33 })).toEqual({ width: 40, height: 33 });
  }
  expect(rotatedSize(rotationOf(45, [0, 0]), { width: 10, height: 10 })).toEqual({ width: 16, height: 16 });
});

test('a blur draws its sigma', () => {
  const random = new Numbers(0.5);
  expect(effectsOf({ name: 'gaussianBlur', kernelSize: [5, 3] }, random)).toEqual([
    { kind: 'blur', kernel: [5, 3], sigma: 1.05 },
  ]);
  expect(random.drawn).toBe(1);
});

test('a negative hue wraps around before it is rounded down, as in NumPy', () => {
  const huesOf = (hue: number) => [...hsvTables({ hue, saturation: 1, value: 1 }).subarray(0, 180)];
  expect(huesOf(-0.01).slice(0, 4)).toEqual([178, 179, 0, 1]);
  expect(huesOf(-0.5).slice(0, 2)).toEqual([90, 91]);
  expect(huesOf(0.01).slice(-3)).toEqual([178, 179, 0]);
  expect(huesOf(-1e-18)[0]).toBe(0);
});

test('a colour jitter draws three numbers for the order, then one for each change in use', () => {
  const random = new Numbers(0, 0, 0, 0.5, 0.25);
  const jitter = { name: 'colorJitter', brightness: 0.4, hue: [-0.1, 0.3] } as const;
  expect(effectsOf(jitter, random)).toEqual([
    { kind: 'hue', turn: -0.1 + 0.4 * 0.25 },
    { kind: 'brightness', factor: 1 },
  ]);
  expect(random.drawn).toBe(5);
});

test('a colour jitter can have any of the 24 orders', () => {
  const orders = new Set<string>();
  const jitter = { name: 'colorJitter', brightness: 1, contrast: 1, saturation: 1, hue: 0.5 } as const;
  for (let i = 0; i < 4; i++) {
    for (let j = 0; j < 3; j++) {
      for (let k = 0; k < 2; k++) {
        const numbers = new Numbers((i + 0.5) / 4, (j + 0.5) / 3, (k + 0.5) / 2, 0.5, 0.5, 0.5, 0.5);
        orders.add(
          effectsOf(jitter, numbers)
            .map(({ kind }) => kind)
            .join(),
        );
      }
    }
  }
  expect(orders.size).toBe(24);
});

test('an erased rectangle is drawn again until it fits, and nothing is erased if none fits', () => {
  const erasing = { name: 'randomErasing', p: 1, scale: [0.5, 1], ratio: [1, 1], value: [1, 2, 3] } as const;
  const random = new Numbers(0, 1, 0.5, 0.2, 0.5, 0.5, 0.25);
  // The whole area at ratio 1 is a square of 89 pixels, more than the height of 80. The next square has 69.
  expect(effectsOf(erasing, random)).toEqual([
    { kind: 'erase', rect: { x: Math.floor(0.25 * 32), y: 6, width: 69, height: 69 }, value: [1, 2, 3] },
  ]);
  expect(random.drawn).toBe(7);
  expect(effectsOf(erasing, new Numbers(0.99))).toEqual([]);
  expect(effectsOf({ ...erasing, p: 0.5 }, new Numbers(0.5))).toEqual([]);
});

test('successive effects are one pass, and a crop or flip after them starts another', () => {
  const list: readonly StepInput[] = [
    { name: 'resize', size: [40, 50] },
    { name: 'randomHorizontalFlip', p: 1 },
    { name: 'randomRotation', degrees: 10 },
    { name: 'gaussianBlur', kernelSize: 3 },
    { name: 'centerCrop', size: 30 },
    { name: 'grayscale' },
  ];
  const { passes, width, height } = planSample(compileTransform(list), 500, 400, new Numbers(0.5));
  expect(passes).toHaveLength(2);
  expect(passes[0]!.effects!.map(({ kind }) => kind)).toEqual(['rotate', 'blur']);
  expect(passes[1]).toMatchObject({ x: { first: 0, count: 30 }, source: { x: 10, y: 5 } });
  expect(passes[1]!.effects).toEqual([{ kind: 'saturation', factor: 0 }]);
  expect({ width, height }).toEqual({ width: 30, height: 30 });
});

test('a vertical flip joins the resize, and a crop after it is taken from the other side', () => {
  const list: readonly StepInput[] = [
    { name: 'resize', size: [40, 50] },
    { name: 'randomVerticalFlip', p: 1 },
    { name: 'randomCrop', size: [10, 50] },
  ];
  const { passes } = planSample(compileTransform(list), 500, 400, new Numbers(0));
  expect(passes).toMatchObject([{ y: { first: 30, count: 10, flip: true }, x: { flip: false } }]);
});

test('erasing after normalize is drawn last, with a key for its noise if the value is random', () => {
  const list: readonly StepInput[] = [
    { name: 'centerCrop', size: 50 },
    { name: 'normalize', mean: [0, 0, 0], std: [1, 1, 1] },
    { name: 'randomErasing', p: 1, value: 'random' },
  ];
  const random = new Numbers(0, 0.5, 0.5, 0.5, 0.5, 0.25, 0.75);
  const { passes, erased } = planSample(compileTransform(list), 100, 100, random);
  expect(passes[0]!.effects).toBeUndefined();
  expect(erased).toMatchObject([{ value: 'random', noise: [2 ** 30, 3 * 2 ** 30] }]);
  expect(random.drawn).toBe(7);
});

test('a blur kernel larger than the mirrored image, and a rotated image that is too large, throw errors', () => {
  expect(() => effectsOf({ name: 'gaussianBlur', kernelSize: 99 }, new Numbers(0), 49, 100)).toThrow(
    /49x100 pixels, too small for the gaussianBlur kernel of 99x99.*kernelSize/,
  );
  expect(() =>
    effectsOf({ name: 'randomRotation', degrees: [45, 45], expand: true }, new Numbers(0), 4000, 4000),
  ).toThrow(/randomRotation makes it 5658x5658.*4096/);
});

test.each([
  [[{ name: 'randomRotation', degrees: [5, -5] }], /degrees.*randomRotation|randomRotation.*degrees/],
  [[{ name: 'randomRotation', degrees: 5, interpolation: 'lanczos' }], /interpolation.*nearest, bilinear or bicubic/],
  [[{ name: 'gaussianBlur', kernelSize: 4 }], /kernelSize.*odd/],
  [[{ name: 'gaussianBlur', kernelSize: 3, sigma: 0 }], /gaussianBlur.*sigma/],
  [[{ name: 'colorJitter', hue: 0.6 }], /Step 1 of the transform, colorJitter.*hue/],
  [[{ name: 'colorJitter', brightness: -1 }], /brightness/],
  [[{ name: 'grayscale', numOutputChannels: 1 }], /numOutputChannels/],
  [[{ name: 'randomErasing', value: 'random' }], /Step 1.*randomErasing.*"random".*after normalize/],
  [[{ name: 'randomErasing', value: 0.5 }], /0.5.*after normalize/],
  [[{ name: 'toDtype', dtype: 'float64' }], /uint8, float32 or float16/],
  [
    [
      { name: 'toDtype', dtype: 'float32' },
      { name: 'gaussianBlur', kernelSize: 3 },
    ],
    /Step 2 .*gaussianBlur, must come before toDtype/,
  ],
  [
    [
      { name: 'toDtype', dtype: 'float32' },
      { name: 'randomErasing' },
      { name: 'normalize', mean: [0, 0, 0], std: [1, 1, 1] },
    ],
    /Step 3 .*normalize, cannot come after a randomErasing/,
  ],
])('the error for %j names the step', (list, message) => {
  expect(() => compileTransform(list as readonly StepInput[])).toThrow(message);
});

test('float16 works with normalize, or with toDtype alone', () => {
  const normalize: StepInput = { name: 'normalize', mean: [0.5, 0.5, 0.5], std: [1, 1, 1] };
  const half: StepInput = { name: 'toDtype', dtype: 'float16', scale: true };
  expect(compileTransform([normalize, half])).toMatchObject({ dtype: 'float16', layout: 'nchw' });
  expect(compileTransform([half, normalize])).toMatchObject({ dtype: 'float16' });
  expect(compileTransform([half])).toMatchObject({
    dtype: 'float16',
    normalization: { mean: [0, 0, 0], std: [1, 1, 1] },
  });
});

test('after a rotation with expand, images have no common size', () => {
  const crop: StepInput = { name: 'centerCrop', size: 20 };
  const turn: StepInput = { name: 'randomRotation', degrees: 5, expand: true };
  expect(compileTransform([crop, turn]).outputShape).toBeNull();
  expect(compileTransform([turn, crop]).outputShape).toEqual({ width: 20, height: 20 });
});

test('an erased rectangle may have any value that decoded pixels can have', () => {
  const erase = (dtype: PixelDtype, value: number | readonly number[] | 'random') => () =>
    compileTransform([{ name: 'randomErasing', value }], { channels: 2, dtype, background: null });
  for (const [dtype, value] of [
    ['int16', -1000],
    ['uint16', [60_000, 0]],
    ['float32', 0.5],
  ] as const)
    expect(erase(dtype, value)).not.toThrow();
  expect(erase('uint16', -1)).toThrow(
    'has the value -1, which uint16 cannot hold: put the step after normalize or toDtype',
  );
  expect(erase('int16', 0.5)).toThrow('int16 cannot hold');
  expect(erase('float32', 'random')).toThrow('float32 cannot hold');
  expect(erase('uint8', 256)).toThrow('does not fit in a byte');
});
