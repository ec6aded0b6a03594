import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TIMES } from '../../../../test/repetitions.js';
import type { Size } from '../codec/codec.js';
import { bucketOf, bucketSizes, checkedSizes, nameOf, usedSizes } from './sizes.js';

const named = (sizes: readonly Size[]) => sizes.map(nameOf).join(' ');

test('sizes of 512 x 512 pixels in steps of 64 have aspect ratios of up to 2', () => {
  expect(named(bucketSizes({ area: 512 * 512, step: 64, maxRatio: 2 }))).toBe(
    '384x640 448x576 512x512 576x448 640x384',
  );
  expect(bucketSizes({ area: 2 ** 20, step: 64, maxRatio: 2 })).toHaveLength(13);
});

test('the sizes of one megapixel with aspect ratios of up to 4 include those of SDXL', () => {
  const sizes = bucketSizes({ area: 2 ** 20, step: 64, maxRatio: 4 });
  expect(sizes).toHaveLength(33);
  const names = sizes.map(nameOf);
  for (const name of ['1024x1024', '1152x896', '896x1152', '1216x832', '1344x768', '1536x640', '640x1536']) {
    expect(names).toContain(name);
  }
});

const rules = fc.record({
  side: fc.integer({ min: 128, max: 1100 }),
  step: fc.constantFrom(32, 64),
  maxRatio: fc.constantFrom(1, 2, 3),
});

test('no size has more pixels than requested, and each size is also there rotated', () => {
  fc.assert(
    fc.property(rules, ({ side, step, maxRatio }) => {
      const area = side * side;
      const sizes = bucketSizes({ area, step, maxRatio });
      const names = sizes.map(nameOf);
      sizes.forEach(({ width, height }, i) => {
        expect(width * height).toBeLessThanOrEqual(area);
        expect([width % step, height % step]).toEqual([0, 0]);
        expect(Math.max(width, height)).toBeLessThanOrEqual(maxRatio * Math.min(width, height));
        expect(names).toContain(nameOf({ width: height, height: width }));
        if (i > 0) expect(sizes[i - 1]!.width / sizes[i - 1]!.height).toBeLessThan(width / height);
      });
    }),
  );
});

test('a sample gets the size whose aspect ratio is nearest by its logarithm', () => {
  const image = fc.record({
    width: fc.integer({ min: 1, max: 5000 }),
    height: fc.integer({ min: 1, max: 5000 }),
  });
  fc.assert(
    fc.property(rules, image, ({ side, step, maxRatio }, { width, height }) => {
      const sizes = bucketSizes({ area: side * side, step, maxRatio });
      const distance = (size: Size) => Math.abs(Math.log(width / height) - Math.log(size.width / size.height));
      expect(distance(sizes[bucketOf(width, height, sizes)]!)).toBeLessThanOrEqual(
        Math.min(...sizes.map(distance)) + 1e-12,
      );
    }),
    { numRuns: 200 * TIMES },
  );
});

test('a sample on the border between two sizes gets the wider one', () => {
  const sizes = [
    { width: 10, height: 40 },
    { width: 40, height: 10 },
  ];
  expect(bucketOf(500, 500, sizes)).toBe(1);
  expect(bucketOf(499, 500, sizes)).toBe(0);
});

test('sizes with fewer than a thousandth of all samples are omitted', () => {
  const sizes = bucketSizes({ area: 512 * 512, step: 64, maxRatio: 2 });
  expect(named(usedSizes(sizes, [1, 0, 997, 1, 1]))).toBe('384x640 512x512 576x448 640x384');
  expect(named(usedSizes(sizes, [1, 0, 998, 1, 1]))).toBe('512x512');
});

test('a list of sizes is sorted, and rejected if two sizes have the same aspect ratio', () => {
  const [wide, tall] = [
    { width: 640, height: 384 },
    { width: 384, height: 640 },
  ];
  expect(checkedSizes([wide, tall])).toEqual([tall, wide]);
  expect(() => checkedSizes([wide, tall, { width: 320, height: 192 }])).toThrow(
    '320x192 and 640x384 have the same aspect ratio',
  );
  expect(() => checkedSizes([])).toThrow('the list of sizes is empty');
});

test('a rule that gives no size, or hundreds of sizes, is rejected', () => {
  expect(() => bucketSizes({ area: 100, step: 64, maxRatio: 2 })).toThrow('no size of at most 100 pixels');
  expect(() => bucketSizes({ area: 2 ** 22, step: 1, maxRatio: 4 })).toThrow('more than 255 sizes');
});
