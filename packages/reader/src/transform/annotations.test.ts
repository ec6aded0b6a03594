import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Annotations, GivenAnnotations } from './annotations.js';
import { clipped } from './clip-polygon.js';
import { planSample } from './plan.js';
import { compileTransform, type StepInput } from './transform.js';

const IMAGE = { width: 100, height: 60 };
const half = { next: () => 0.5 };

function given(some: Partial<GivenAnnotations> & Pick<GivenAnnotations, 'count'>): GivenAnnotations {
  const normalized = { boxes: false, keypoints: false, polygons: false };
  return { boxes: null, labels: null, keypoints: null, polygons: null, normalized, ...some };
}

function moved(steps: readonly StepInput[], what: GivenAnnotations, { width, height } = IMAGE): Annotations {
  return planSample(compileTransform(steps), width, height, half, what).annotations!;
}

function area(ring: ArrayLike<number>): number {
  let twice = 0;
  for (let at = 0; at < ring.length; at += 2) {
    const next = (at + 2) % ring.length;
    twice += ring[at]! * ring[next + 1]! - ring[next]! * ring[at + 1]!;
  }
  return Math.abs(twice) / 2;
}

const square = Float64Array.of(10, 10, 30, 10, 30, 30, 10, 30);

test('a polygon is mirrored, scaled and clipped like its box', () => {
  const boxes = Float64Array.of(10, 10, 30, 30);
  const steps: readonly StepInput[] = [
    { name: 'randomHorizontalFlip', p: 1 },
    { name: 'resize', size: [30, 50] },
    { name: 'centerCrop', size: [20, 25] },
    { name: 'randomVerticalFlip', p: 1 },
    { name: 'randomRotation', degrees: [180, 180] },
  ];
  const after = moved(steps, given({ count: 1, boxes, polygons: [[square]] }));
  const [ring] = after.polygons![0]!;
  const xs = ring!.filter((_, i) => i % 2 === 0);
  const ys = ring!.filter((_, i) => i % 2 === 1);
  const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  box.forEach((value, i) => {
    expect(value).toBeCloseTo(after.boxes![i]!, 9);
  });
});

test('the clipped part of a convex polygon has the area found by counting points, and is inside the image', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 2 * Math.PI, noNaN: true }), { minLength: 3, maxLength: 8 }),
      fc.double({ min: -20, max: 120, noNaN: true }),
      fc.double({ min: -20, max: 80, noNaN: true }),
      (angles, x, y) => {
        const sorted = angles.toSorted((a, b) => a - b);
        const ring = Float64Array.from(sorted.flatMap((angle) => [x + 40 * Math.cos(angle), y + 40 * Math.sin(angle)]));
        const [part] = clipped(ring, IMAGE);
        const expected = counted(ring);
        expect(Math.abs((part === undefined ? 0 : area(part)) - expected)).toBeLessThan(60);
        for (let at = 0; part !== undefined && at < part.length; at += 2) {
          expect(part[at]! >= -1e-9 && part[at]! <= IMAGE.width + 1e-9).toBe(true);
          expect(part[at + 1]! >= -1e-9 && part[at + 1]! <= IMAGE.height + 1e-9).toBe(true);
        }
      },
    ),
  );
});

/** The area of a convex ring on the image, measured by counting pixel centers. The error is less than the length of its edge. */
function counted(ring: Float64Array): number {
  let inside = 0;
  for (let x = 0.5; x < IMAGE.width; x++) {
    for (let y = 0.5; y < IMAGE.height; y++) {
      let isInside = area(ring) > 1;
      for (let at = 0; at < ring.length && isInside; at += 2) {
        const next = (at + 2) % ring.length;
        const [x1, y1, x2, y2] = [ring[at]!, ring[at + 1]!, ring[next]!, ring[next + 1]!];
        isInside = (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) >= 0;
      }
      if (isInside) inside++;
    }
  }
  return inside;
}

test('normalized coordinates become pixels before the first step', () => {
  const normalized = { boxes: true, keypoints: true, polygons: true };
  const after = moved(
    [],
    given({
      count: 1,
      boxes: Float64Array.of(0.1, 0.5, 0.2, 1),
      keypoints: { perObject: 1, values: Float64Array.of(0.5, 0.25, 1) },
      polygons: [[Float64Array.of(0, 0, 1, 0, 1, 1)]],
      normalized,
    }),
  );
  expect([...after.boxes!]).toEqual([10, 30, 20, 60]);
  expect([...after.keypoints!]).toEqual([50, 15, 1]);
  expect([...after.polygons![0]![0]!]).toEqual([0, 0, 100, 0, 100, 60]);
});

test('dropping an object also drops its label, keypoints and polygons', () => {
  const after = moved(
    [{ name: 'centerCrop', size: [60, 40] }, { name: 'sanitizeBoundingBoxes' }],
    given({
      count: 3,
      boxes: Float64Array.of(0, 0, 20, 20, 40, 0, 60, 20, 25, 5, 50, 30),
      labels: Int32Array.of(7, 8, 9),
      keypoints: { perObject: 1, values: Float64Array.of(1, 1, 2, 50, 10, 2, 30, 10, 0) },
      polygons: [[square], [], [square, square]],
    }),
  );
  expect(after.rows).toEqual([1, 2]);
  expect([...after.labels!]).toEqual([8, 9]);
  expect([...after.boxes!]).toEqual([10, 0, 30, 20, 0, 5, 20, 30]);
  expect([...after.keypoints!]).toEqual([20, 10, 2, 0, 10, 0]);
  expect(after.polygons!.map((rings) => rings.length)).toEqual([0, 0]);
});

test('randomIoUCrop does not change an image without boxes', () => {
  const plan = planSample(
    compileTransform([{ name: 'randomIoUCrop' }]),
    100,
    60,
    half,
    given({ count: 0, boxes: new Float64Array(0) }),
  );
  expect([plan.width, plan.height]).toEqual([100, 60]);
});

test.each([
  [[{ name: 'letterbox', size: [60, 80] }], { width: 80, height: 60 }],
  [
    [
      { name: 'centerCrop', size: 10 },
      { name: 'pad', padding: [1, 2, 3, 4] },
    ],
    { width: 14, height: 16 },
  ],
  [[{ name: 'resize', maxSize: 64 }], null],
  [[{ name: 'scaleJitter', targetSize: 64 }], null],
  [[{ name: 'randomCrop', size: 64 }, { name: 'randomZoomOut' }], null],
  [[{ name: 'randomCrop', size: 64 }, { name: 'sanitizeBoundingBoxes' }], { width: 64, height: 64 }],
] as const)('with %j, images have one size: %j', (list, shape) => {
  expect(compileTransform(list).outputShape).toEqual(shape);
});
