import { expect, test } from 'vitest';
import { planSample, reducedPlan, reductionOf } from './plan.js';
import { compileTransform, type StepInput } from './transform.js';

const half = { next: () => 0.5 };

function plan(steps: readonly StepInput[], width: number, height: number, random = half) {
  return planSample(compileTransform(steps), width, height, random);
}

test('crop, resize, crop and flip are one pass', () => {
  const { passes, width, height } = plan(
    [
      { name: 'centerCrop', size: [300, 400] },
      { name: 'resize', size: 150 },
      { name: 'randomHorizontalFlip', p: 1 },
      { name: 'randomCrop', size: 100 },
    ],
    500,
    375,
  );
  expect({ width, height }).toEqual({ width: 100, height: 100 });
  expect(passes).toEqual([
    {
      source: { x: 50, y: 38, width: 400, height: 300 },
      // Column 50 of the mirrored image is column 200 - 50 - 100 of the image.
      x: { source: 400, output: 200, first: 50, count: 100, flip: true },
      y: { source: 300, output: 150, first: 25, count: 100, flip: false },
      border: null,
    },
  ]);
});

test('a crop of a mirrored image is taken from the other side', () => {
  const { passes } = plan(
    [
      { name: 'randomHorizontalFlip', p: 1 },
      { name: 'randomCrop', size: [10, 20] },
    ],
    100,
    10,
    { next: () => 0.99 },
  );
  expect(passes[0]).toMatchObject({ source: { x: 0, y: 0, width: 20, height: 10 }, x: { flip: true } });
});

test('two flips cancel to a plain copy', () => {
  const flip: StepInput = { name: 'randomHorizontalFlip', p: 1 };
  expect(plan([flip, flip], 10, 10).passes[0]!.x.flip).toBe(false);
});

test('a second resize is a second pass over the result of the first', () => {
  const { passes } = plan(
    [
      { name: 'resize', size: [50, 60] },
      { name: 'randomResizedCrop', size: 20, scale: [0.25, 0.25], ratio: [1, 1] },
    ],
    500,
    400,
  );
  expect(passes).toMatchObject([
    { source: { x: 0, y: 0, width: 500, height: 400 }, x: { output: 60, first: 17, count: 27 } },
    { source: { x: 0, y: 0, width: 27, height: 27 }, x: { output: 20, first: 0, count: 20 } },
  ]);
});

test('a crop larger than the image adds a border, and further steps read the result', () => {
  const { passes } = plan(
    [
      { name: 'centerCrop', size: 20 },
      { name: 'resize', size: 10 },
    ],
    10,
    30,
  );
  expect(passes).toMatchObject([
    { source: { x: 0, y: 5, width: 10, height: 20 }, border: { left: 5, top: 0, right: 5, bottom: 0, fill: 0 } },
    { source: { x: 0, y: 0, width: 20, height: 20 }, x: { output: 10 }, border: null },
  ]);
});

test('a border is in the last pass only if the result is interleaved bytes', () => {
  const crop: StepInput = { name: 'centerCrop', size: 20 };
  expect(plan([crop], 10, 10).passes).toHaveLength(1);
  expect(plan([crop, { name: 'layout', layout: 'nchw' }], 10, 10).passes).toHaveLength(2);
  expect(plan([crop, { name: 'randomHorizontalFlip', p: 1 }], 10, 10).passes).toHaveLength(2);
});

test('a crop of only the padding contains nothing of the image', () => {
  const { passes } = plan([{ name: 'randomCrop', size: 4, padding: 8, fill: 7 }], 2, 2, { next: () => 0 });
  expect(passes).toMatchObject([{ x: { count: 0 }, border: { left: 4, top: 4, right: 0, bottom: 0, fill: 7 } }]);
});

test('without steps the image is copied', () => {
  expect(plan([], 7, 5)).toMatchObject({ width: 7, height: 5, passes: [{ source: { width: 7, height: 5 } }] });
});

test('a crop larger than the image throws an error with a remedy', () => {
  expect(() => plan([{ name: 'randomCrop', size: 20 }], 10, 10)).toThrow(/10x10 pixels.*20x20.*padIfNeeded/);
});

test('an image is decoded at a reduced size if at least twice the target size remains', () => {
  const reductions = [
    [447, 1],
    [448, 1],
    [895, 1],
    [896, 2],
    [1791, 2],
    [1792, 4],
    [3584, 8],
    [9000, 8],
  ] as const;
  for (const [size, reduction] of reductions) {
    expect(reductionOf(plan([{ name: 'resize', size: [224, 224] }], size, 9000), 'scaled'), `${size}`).toBe(reduction);
  }
  expect(reductionOf(plan([{ name: 'randomCrop', size: 224 }], 9000, 9000), 'scaled')).toBe(1);
});

test('a reduced plan has the same crop in reduced pixels, fractions included', () => {
  const full = plan(
    [
      { name: 'centerCrop', size: 401 },
      { name: 'resize', size: [50, 50] },
    ],
    1003,
    801,
  );
  expect(full.passes[0]!.source).toMatchObject({ x: 301, y: 200 });
  const { passes } = reducedPlan(full, { width: 1003, height: 801 }, 4);
  expect(passes[0]).toMatchObject({
    source: { x: 75, y: 50, width: 101, height: 101 },
    x: { source: 101, output: 50, boxStart: 0.25, boxLength: 100.25 },
    y: { source: 101, output: 50, boxStart: 0, boxLength: 100.25 },
  });
});
