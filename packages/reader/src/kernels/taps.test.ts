import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FILTERS, type Filter } from './filters.js';
import { type Axis, axisTaps, mirrored, sourceRange } from './taps.js';

const whole = (source: number, output: number): Axis => ({ source, output, first: 0, count: output, flip: false });

/** An arbitrary window of an arbitrary resize. */
const anyAxis = fc
  .tuple(fc.integer({ min: 1, max: 3000 }), fc.integer({ min: 1, max: 300 }), fc.nat(), fc.nat(), fc.boolean())
  .map(([source, output, from, length, flip]): Axis => {
    const first = from % output;
    return { source, output, first, count: 1 + (length % (output - first)), flip };
  });

test('a resize to half the size uses 4 source pixels per pixel, and 3 at the edges', () => {
  const { lo, hi, taps, bits, starts, weights } = axisTaps(whole(8, 4));
  expect({ lo, hi, taps, bits }).toEqual({ lo: 0, hi: 8, taps: 4, bits: 8 });
  expect([...starts]).toEqual([0, 1, 3, 4]);
  expect([...weights]).toEqual([110, 110, 36, 0, 32, 96, 96, 32, 32, 96, 96, 32, 0, 36, 110, 110]);
});

test('a resize to the same size keeps each pixel', () => {
  const { taps, starts, weights } = axisTaps(whole(5, 5));
  expect(taps).toBe(1);
  expect([...starts]).toEqual([0, 1, 2, 3, 4]);
  expect([...weights]).toEqual([256, 256, 256, 256, 256]);
});

test('weights are not negative and add up to 1 << bits, and taps are in the range', () => {
  fc.assert(
    fc.property(anyAxis, (axis) => {
      const { lo, hi, taps, bits, starts, weights } = axisTaps(axis);
      for (let i = 0; i < axis.count; i++) {
        const own = weights.subarray(i * taps, (i + 1) * taps);
        expect(own.reduce((sum, weight) => sum + weight, 0)).toBe(1 << bits);
        expect(Math.min(...own)).toBeGreaterThanOrEqual(0);
        expect(starts[i]).toBeGreaterThanOrEqual(0);
        // The last tap of a wide filter may be outside if it has no weight.
        const inside = starts[i]! + taps <= hi - lo;
        expect(inside || (starts[i]! + taps === hi - lo + 1 && own.at(-1) === 0)).toBe(true);
      }
    }),
  );
});

test('the range of a window is the part of the source that has weights', () => {
  fc.assert(
    fc.property(anyAxis, (axis) => {
      const { lo, hi } = sourceRange(axis);
      const full = axisTaps(whole(axis.source, axis.output));
      const used = new Set<number>();
      for (let i = axis.first; i < axis.first + axis.count; i++) {
        for (let k = 0; k < full.taps; k++) if (full.weights[i * full.taps + k]! > 0) used.add(full.starts[i]! + k);
      }
      expect(Math.min(...used)).toBeGreaterThanOrEqual(lo);
      expect(Math.max(...used)).toBeLessThan(hi);
      // Tiny weights are rounded to zero, so the range may be a little longer, but never by more than the width of the filter.
      expect(hi - lo - used.size).toBeLessThanOrEqual(full.taps);
    }),
  );
});

test('filters end at the edges of a crop before the resize, but not at those of a box', () => {
  const box: Axis = { source: 100, output: 10, first: 0, count: 10, flip: false, boxStart: 20, boxLength: 40 };
  expect(sourceRange(whole(40, 10))).toEqual({ lo: 0, hi: 40 });
  expect(sourceRange(box)).toEqual({ lo: 18, hi: 62 });
});

test('a flip only reverses the result', () => {
  fc.assert(
    fc.property(anyAxis, (axis) => {
      const { taps, starts, weights } = axisTaps({ ...axis, flip: false });
      const flipped = axisTaps({ ...axis, flip: true });
      expect([...flipped.starts].reverse()).toEqual([...starts]);
      expect([...flipped.weights.subarray(0, taps)]).toEqual([...weights.subarray((axis.count - 1) * taps)]);
    }),
  );
});

test('mirrored filters do to a reversed source what the filters do to the source', () => {
  fc.assert(
    fc.property(anyAxis, (axis) => {
      const filters = axisTaps(axis);
      const source = Float64Array.from({ length: filters.hi - filters.lo + 1 }, (_, i) => (i * 7919) % 256);
      const inside = source.subarray(0, -1);
      const turned = Float64Array.of(...Float64Array.from(inside).reverse(), 0);
      expect(apply(mirrored(filters), turned)).toEqual(apply(filters, source));
    }),
  );
});

function apply({ taps, starts, weights }: ReturnType<typeof axisTaps>, source: Float64Array): number[] {
  return Array.from(starts, (start, i) => {
    let sum = 0;
    for (let k = 0; k < taps; k++) sum += weights[i * taps + k]! * source[start + k]!;
    return sum;
  });
}

test('the weights of every filter fit 16 bits, add up to 1 << bits, and belong to pixels of the source', () => {
  fc.assert(
    fc.property(anyAxis, fc.constantFrom(...(Object.keys(FILTERS) as Filter[])), (axis, filter) => {
      const { lo, hi, taps, bits, starts, weights } = axisTaps({ ...axis, filter });
      expect(hi).toBeLessThanOrEqual(axis.source);
      for (let i = 0; i < axis.count; i++) {
        const own = [...weights.subarray(i * taps, (i + 1) * taps)];
        expect(own.reduce((sum, weight) => sum + weight, 0)).toBe(1 << bits);
        const used = own.findLastIndex((weight) => weight !== 0);
        expect(starts[i]).toBeGreaterThanOrEqual(0);
        expect(starts[i]! + used).toBeLessThan(hi - lo);
      }
    }),
  );
});

test('the weights of the widest filters fit 16 bits', () => {
  for (const [source, output] of [
    [6, 2],
    [3, 1],
    [5, 1],
    [6, 1],
    [7, 2],
    [100, 9],
    [65_000, 28],
    [65_535, 1],
  ] as const) {
    const { weights } = axisTaps(whole(source, output));
    expect(Math.max(...weights.subarray(0, 50_000))).toBeLessThanOrEqual(32_767);
    expect(Math.min(...weights.subarray(0, 50_000))).toBeGreaterThanOrEqual(0);
  }
});
