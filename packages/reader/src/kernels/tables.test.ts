import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TIMES } from '../../../../test/repetitions.js';
import { columnTable, DecodeBufferError, maxTaps, rowTable, TableCache } from './tables.js';
import { type Axis, axisTaps } from './taps.js';

const whole = (source: number, output: number): Axis => ({ source, output, first: 0, count: output, flip: false });
const memory = () => new WebAssembly.Memory({ initial: 64, maximum: 64, shared: true });

test('no window of any resize has more taps than planned for its range', () => {
  const anyAxis = fc
    .record({
      source: fc.integer({ min: 1, max: 2000 }),
      output: fc.integer({ min: 1, max: 100 }),
      window: fc.tuple(fc.nat(), fc.nat()),
      box: fc.tuple(fc.double({ min: 0, max: 0.9, noNaN: true }), fc.double({ min: 0.01, max: 1, noNaN: true })),
    })
    .map(({ source, output, window, box }): Axis => {
      const first = window[0] % output;
      const boxStart = source * box[0];
      const boxLength = (source - boxStart) * box[1];
      return { source, output, first, count: 1 + (window[1] % (output - first)), flip: false, boxStart, boxLength };
    });
  fc.assert(
    fc.property(anyAxis, (axis) => {
      const { taps, lo, hi } = axisTaps(axis);
      expect(taps).toBeLessThanOrEqual(maxTaps(hi - lo, axis.count, 1));
    }),
    { numRuns: 200 * TIMES },
  );
});

test('a cached table is reused, but not for another axis', () => {
  const cache = new TableCache(memory(), 0, 1 << 16, columnTable);
  const first = cache.get(whole(100, 10));
  expect(cache.get(whole(100, 10))).toBe(first);
  expect(cache.get({ ...whole(100, 10), flip: true })).not.toBe(first);
  expect(cache.get({ ...whole(100, 10), boxStart: 1e-9 })).not.toBe(first);
  expect(cache.get(whole(100, 10)).taps).toBe(first.taps);
});

test('a full cache is cleared, and its tables never exceed its memory', () => {
  const bytes = 4096;
  const cache = new TableCache(memory(), 64, bytes, rowTable);
  for (let source = 1; source < 300; source++) {
    const { address } = cache.get(whole(source, 16));
    expect(address % 16).toBe(0);
    expect(address).toBeGreaterThanOrEqual(64);
    expect(address).toBeLessThan(64 + bytes);
  }
});

test('a table larger than its cache is rejected before it is made', () => {
  const cache = new TableCache(memory(), 0, 4 << 20, columnTable);
  expect(() => cache.get(whole(150_000_000, 224))).toThrow(DecodeBufferError);
  expect(() => cache.get(whole(150_000_000, 224))).toThrow('a resize from 150000000 to 224 pixels needs a table of');
  expect(cache.get(whole(65_535, 1)).taps).toBe(65_536);
});

test('the row starts of a vertically flipped picture are ascending', () => {
  const { starts } = rowTable({ ...whole(100, 10), flip: true });
  expect([...starts]).toEqual([...starts].sort((a, b) => a - b));
});
