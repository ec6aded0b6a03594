import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TIMES } from '../../../../../test/repetitions.js';
import { Distribution } from './distribution.js';

function of(values: readonly number[]) {
  const distribution = new Distribution();
  for (const value of values) distribution.add(value);
  return distribution;
}

test('every number is counted in the bin whose range contains it, and the bins are contiguous', () => {
  const number = fc.oneof(fc.nat(100), fc.nat(), fc.maxSafeNat());
  fc.assert(
    fc.property(fc.array(number, { minLength: 1, maxLength: 200 }), fc.integer({ min: 1, max: 20 }), (values, most) => {
      const { count, smallest, largest, histogram } = of(values).summary(most);
      expect([count, smallest, largest]).toEqual([values.length, Math.min(...values), Math.max(...values)]);
      expect(histogram.length).toBeLessThanOrEqual(most);
      for (const [i, bin] of histogram.entries()) {
        expect(bin.count).toBe(values.filter((value) => value >= bin.from && value < bin.to).length);
        if (i > 0) expect(bin.from).toBe(histogram[i - 1]!.to);
      }
      expect(histogram.reduce((sum, bin) => sum + bin.count, 0)).toBe(values.length);
      expect(histogram[0]!.count * histogram.at(-1)!.count).toBeGreaterThan(0);
    }),
    { numRuns: 100 * TIMES },
  );
});

test('the mean is exact, and the median is exact to within 1/32', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1_000_000), { minLength: 1, maxLength: 99 }), (values) => {
      const { mean, median } = of(values).summary();
      const sorted = values.toSorted((a, b) => a - b);
      const exact = sorted[Math.floor((sorted.length - 1) / 2)]!;
      expect(mean).toBeCloseTo(values.reduce((sum, value) => sum + value, 0) / values.length, 3);
      expect(Math.abs(median - exact)).toBeLessThanOrEqual(exact / 32);
    }),
  );
});

test('an empty list has no bins', () => {
  expect(of([]).summary()).toEqual({ count: 0, smallest: 0, largest: 0, mean: 0, median: 0, histogram: [] });
});
