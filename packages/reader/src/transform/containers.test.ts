import { expect, test } from 'vitest';
import { planSample } from './plan.js';
import { SampleRandom } from './random.js';
import { compileTransform, type StepInput, type TransformInput } from './transform.js';

const invert = { name: 'randomInvert', p: 1 } as const;
const equalize = { name: 'randomEqualize', p: 1 } as const;
const posterize = { name: 'randomPosterize', bits: 4, p: 1 } as const;

/** The kinds of effects that a list draws, for each of 600 samples. */
function drawn(list: readonly StepInput[]): string[] {
  const transform = compileTransform(list);
  const random = new SampleRandom(3);
  return Array.from({ length: 600 }, (_, sample) =>
    planSample(transform, 40, 30, random.start(0, sample, 0))
      .passes.flatMap(({ effects }) => effects ?? [])
      .map(({ kind }) => kind)
      .join(' '),
  );
}

/** How many of 600 samples have each result. */
function counts(list: readonly StepInput[]): Record<string, number> {
  const result: Record<string, number> = {};
  for (const kinds of drawn(list)) result[kinds] = (result[kinds] ?? 0) + 1;
  return result;
}

test('randomApply applies all of its steps with probability p, or none', () => {
  const apply = (p: number) => counts([{ name: 'randomApply', transforms: [invert, [equalize, [posterize]]], p }]);
  expect(apply(1)).toEqual({ 'invert equalize posterize': 600 });
  expect(apply(0)).toEqual({ '': 600 });
  const half = apply(0.25);
  expect(Object.keys(half).sort()).toEqual(['', 'invert equalize posterize']);
  expect(half['invert equalize posterize']).toBeGreaterThan(110);
  expect(half['invert equalize posterize']).toBeLessThan(190);
});

test('randomChoice applies one item, by its weights', () => {
  const equal = counts([{ name: 'randomChoice', transforms: [invert, [equalize, posterize], []] }]);
  expect(Object.keys(equal).sort()).toEqual(['', 'equalize posterize', 'invert']);
  expect(Math.min(...Object.values(equal))).toBeGreaterThan(160);
  const weighted = counts([{ name: 'randomChoice', transforms: [invert, equalize, posterize], p: [3, 0, 1] }]);
  expect(Object.keys(weighted).sort()).toEqual(['invert', 'posterize']);
  expect(weighted.invert).toBeGreaterThan(400);
  expect(weighted.invert).toBeLessThan(500);
});

test('randomOrder applies its items in each order equally often, and keeps the order within a list', () => {
  const orders = counts([{ name: 'randomOrder', transforms: [invert, [equalize, posterize]] }]);
  expect(Object.keys(orders).sort()).toEqual(['equalize posterize invert', 'invert equalize posterize']);
  expect(Math.min(...Object.values(orders))).toBeGreaterThan(250);
  expect(counts([{ name: 'randomOrder', transforms: [] }])).toEqual({ '': 600 });
});

test('containers nest to any depth, and accept the spelling of torchvision and of Python', () => {
  const list = [
    {
      name: 'RandomApply',
      p: 1,
      transforms: [
        { name: 'random_choice', transforms: [{ name: 'RandomOrder', transforms: [{ name: 'RandomInvert', p: 1 }] }] },
      ],
    },
  ];
  expect(counts(list as unknown as readonly StepInput[])).toEqual({ invert: 600 });
});

test('the size of batches is known if all choices have it', () => {
  const shape = (list: TransformInput) => compileTransform(list).outputShape;
  const crop = (size: number): StepInput => ({ name: 'randomResizedCrop', size });
  const square = { width: 8, height: 8 };
  expect(shape([{ name: 'randomChoice', transforms: [crop(8), { name: 'centerCrop', size: 8 }] }])).toEqual(square);
  expect(shape([{ name: 'randomChoice', transforms: [crop(8), crop(9)] }])).toBeNull();
  expect(shape([crop(8), { name: 'randomApply', transforms: [invert] }])).toEqual(square);
  expect(shape([{ name: 'randomApply', transforms: [crop(8)] }])).toBeNull();
  expect(shape([crop(8), { name: 'randomOrder', transforms: [invert, equalize] }])).toEqual(square);
});

test.each([
  [
    [{ name: 'randomApply', transforms: [{ name: 'resise', size: 3 }] }],
    /Step 1 of item 1 of step 1 of the transform.*unknown; did you mean "resize"\?/,
  ],
  [[{ name: 'randomApply', transforms: [[invert, { name: 'randomPosterize' }]] }], /Step 2 of list 1 of step 1.*bits/],
  [[{ name: 'randomApply', transforms: [{ name: 'toDtype', dtype: 'float32' }] }], /toDtype cannot be inside step 1/],
  [[{ name: 'randomChoice', transforms: [] }], /transforms must have at least one item/],
  [[{ name: 'randomChoice', transforms: [invert, equalize], p: [1] }], /p must have 2 weights/],
  [[{ name: 'randomChoice', transforms: [invert], p: [0] }], /p must have a weight above 0/],
  [[{ name: 'randomOrder', transforms: 3 }], /randomOrder.*transforms/],
  [[{ name: 'randomApply', transforms: [{ name: 'randomErasing', value: 'random' }] }], /does not fit in a byte/],
])('the error for %j names the position of the step', (list, message) => {
  expect(() => compileTransform(list as unknown as TransformInput)).toThrow(message);
});
