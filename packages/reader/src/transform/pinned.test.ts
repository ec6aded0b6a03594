import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { planSample } from './plan.js';
import { SampleRandom } from './random.js';
import { compileTransform, type TransformInput } from './transform.js';

/** Transforms that use every random parameter, each with the digest of its plans. The same seed must always give the same crops. */
const PINNED: Readonly<Record<string, readonly [TransformInput, string]>> = {
  train224: ['train224', 'fe307f06a0204c9e'],
  eval224: ['eval224', '30f55912fa498149'],
  flips: [
    [{ name: 'randomHorizontalFlip' }, { name: 'randomVerticalFlip', p: 0.3 }, { name: 'resize', size: [60, 70] }],
    '2f9d24d37196994e',
  ],
  crops: [
    [
      { name: 'resize', size: 90, maxSize: 120 },
      { name: 'randomCrop', size: [64, 96], padding: [4, 8], padIfNeeded: true, fill: 7, maskFill: 255 },
      { name: 'randomHorizontalFlip' },
      { name: 'centerCrop', size: 80 },
      { name: 'randomResizedCrop', size: [40, 30], scale: [0.3, 0.9], ratio: [0.5, 2] },
    ],
    '89c00bc5ff87a0d3',
  ],
  effects: [
    [
      { name: 'centerCrop', size: 100 },
      { name: 'randomRotation', degrees: 30, interpolation: 'bilinear', expand: true, fill: [1, 2, 3] },
      { name: 'gaussianBlur', kernelSize: [5, 3] },
      { name: 'colorJitter', brightness: 0.4, contrast: [0.5, 1.5], saturation: 0.2, hue: 0.1 },
      { name: 'randomGrayscale', p: 0.5 },
      { name: 'grayscale' },
      { name: 'randomErasing', p: 0.7, value: [9, 8, 7] },
      { name: 'randomVerticalFlip' },
    ],
    'ba5e9baa3c5bda2a',
  ],
  values: [
    [
      { name: 'randomResizedCrop', size: 32 },
      { name: 'toDtype', dtype: 'float32', scale: true },
      { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
      { name: 'randomErasing', p: 0.9, value: 'random' },
      { name: 'toDtype', dtype: 'float16' },
      { name: 'layout', layout: 'nhwc' },
    ],
    '0115e4f8bd5b7d27',
  ],
};
const SIZES = [
  [500, 375],
  [375, 500],
  [64, 64],
  [1999, 33],
  [130, 90],
] as const;

function planDataset(...given: Parameters<typeof planSample>) {
  const { passes, width, height, erased } = planSample(...given);
  return { passes, width, height, erased };
}

test.each(Object.entries(PINNED))('the plans of "%s" equal those of version 1', (_name, [list, digest]) => {
  const transform = compileTransform(list);
  const random = new SampleRandom(2 ** 40 + 42);
  const plans = SIZES.flatMap(([width, height], size) =>
    Array.from({ length: 20 }, (_, sample) =>
      planDataset(transform, width, height, random.start(sample % 3, sample * 7 + size, sample % 2)),
    ),
  );
  // Numbers are rounded to nine digits, because the last bits of a sine depend on the engine.
  const text = JSON.stringify(plans, (_key, value) =>
    typeof value === 'number' && !Number.isInteger(value) ? value.toPrecision(9) : value,
  );
  expect(createHash('sha256').update(text).digest('hex').slice(0, 16)).toBe(digest);
});
