import fc from 'fast-check';
import { expect, test } from 'vitest';
import { centerCropRect, randomCropRect, randomResizedCropRect, resizedSize, roundHalfEven } from './crops.js';

const NONE = { left: 0, top: 0, right: 0, bottom: 0 };

/** A source of these numbers in order, then of 0.5. */
function given(...numbers: number[]) {
  let at = 0;
  return { next: () => numbers[at++] ?? 0.5 };
}

// The expected values of the next three tests were computed by torchvision 0.29.
test.each([
  [500, 375, 256, undefined, 341, 256],
  [375, 500, 256, undefined, 256, 341],
  [333, 500, 256, undefined, 256, 384],
  [3, 2000, 224, undefined, 224, 149333],
  [1, 1, 224, undefined, 224, 224],
  [640, 480, 256, 300, 300, 225],
  [480, 640, 256, 300, 225, 300],
  [317, 239, 200, undefined, 265, 200],
  [100, 100, 64, 65, 64, 64],
])('%dx%d resized to %d (at most %s) has the size that torchvision gives it', (width, height, size, maxSize, w, h) => {
  expect(resizedSize({ width, height }, size, maxSize)).toEqual({ width: w, height: h });
});

test.each([
  [341, 256, 224, 224, 58, 16],
  [257, 256, 224, 225, 16, 16],
  [226, 227, 224, 224, 1, 2],
  [225, 229, 224, 224, 0, 2],
  [100, 100, 224, 224, -62, -62],
  [101, 300, 224, 200, -61, 50],
  [223, 100, 224, 224, 0, -62],
  [7, 5, 4, 2, 2, 2],
  [10, 9, 3, 2, 4, 4],
])('the middle %dx%d of an image is where torchvision takes %dx%d', (width, height, cropWidth, cropHeight, x, y) => {
  const rect = centerCropRect({ width, height }, { width: cropWidth, height: cropHeight });
  expect(rect).toEqual({ x, y, width: cropWidth, height: cropHeight });
});

test.each([
  [500, 375, [0.3, 0.6, 0.25, 0.9], [211, 31, 266, 251]],
  [500, 375, [1, 0.99, 0.01, 0.02, 0, 0], [0, 0, 113, 148]],
  [10, 10, Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? 0.999 : 0)), [0, 0, 10, 10]],
  [2000, 3, Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? 0.9 : 0.5)), [998, 0, 4, 3]],
  [3, 2000, Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? 0.9 : 0.5)), [0, 998, 3, 4]],
  [64, 64, [0.5, 0.5, 0.5, 0.5], [9, 9, 47, 47]],
])('the random part of %dx%d follows torchvision for the same numbers', (width, height, numbers, [x, y, w, h]) => {
  const rect = randomResizedCropRect({ width, height }, [0.08, 1], [3 / 4, 4 / 3], given(...numbers));
  expect(rect).toEqual({ x, y, width: w, height: h });
});

test('a random resized crop is always inside the image, for any image and parameters', () => {
  const side = fc.integer({ min: 1, max: 65_535 });
  const unit = fc.double({ min: 0, max: 1 - 2 ** -32, noNaN: true });
  const range = fc
    .tuple(fc.double({ min: 0.01, max: 4, noNaN: true }), fc.double({ min: 0.01, max: 4, noNaN: true }))
    .map(([a, b]): [number, number] => [Math.min(a, b), Math.max(a, b)]);
  fc.assert(
    fc.property(
      side,
      side,
      range,
      range,
      fc.array(unit, { minLength: 40, maxLength: 40 }),
      (width, height, scale, ratio, numbers) => {
        const rect = randomResizedCropRect({ width, height }, scale, ratio, given(...numbers));
        expect(rect.x >= 0 && rect.y >= 0 && rect.width >= 1 && rect.height >= 1).toBe(true);
        expect(rect.x + rect.width <= width && rect.y + rect.height <= height).toBe(true);
      },
    ),
  );
});

test('a random crop draws its row first, then its column, and only if there is a choice', () => {
  const crop = { width: 4, height: 4 };
  expect(randomCropRect({ width: 10, height: 8 }, crop, NONE, false, given(0.99, 0.5))).toMatchObject({ x: 3, y: 4 });
  expect(randomCropRect({ width: 10, height: 4 }, crop, NONE, false, given(0.99))).toMatchObject({ x: 6, y: 0 });
});

test('a crop larger than the image needs padding, and padIfNeeded adds the whole difference on both sides', () => {
  const crop = { width: 6, height: 4 };
  const image = { width: 4, height: 4 };
  expect(randomCropRect(image, crop, NONE, false, given())).toBeNull();
  expect(randomCropRect(image, crop, NONE, true, given(0))).toMatchObject({ x: -2, y: 0 });
  expect(randomCropRect(image, crop, NONE, true, given(0.99))).toMatchObject({ x: 0, y: 0 });
  const padding = { left: 1, top: 0, right: 1, bottom: 0 };
  expect(randomCropRect(image, crop, padding, false, given())).toMatchObject({ x: -1, y: 0 });
});

test('halves are rounded to the even number, as in Python', () => {
  expect([0.5, 1.5, 2.5, 2.4, 2.6].map(roundHalfEven)).toEqual([0, 2, 2, 2, 3]);
});
