import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TIMES } from '../../../../test/repetitions.js';
import { halfFloatBits } from './half-float.js';

/** IEEE 754 binary16. */
function numberOf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

test('every half-precision number is converted to itself', () => {
  for (let bits = 0; bits < 65_536; bits++) {
    const value = numberOf(bits);
    if (!Number.isNaN(value)) expect(halfFloatBits(value)).toBe(bits);
  }
  expect(numberOf(halfFloatBits(Number.NaN))).toBeNaN();
});

test('any number becomes the nearest half-precision number, and a tie becomes the even one', () => {
  const near = fc.oneof(
    fc.float({ noNaN: true, min: -70_000, max: 70_000 }),
    fc.float({ noNaN: true, min: -Math.fround(1e-4), max: Math.fround(1e-4) }),
  );
  fc.assert(
    fc.property(near, (value) => {
      const bits = halfFloatBits(value);
      const found = numberOf(bits);
      if (Math.abs(value) >= 65_520) {
        expect(found).toBe(Math.sign(value) * Number.POSITIVE_INFINITY);
        return;
      }
      for (const other of [bits - 1, bits + 1]) {
        const rival = numberOf(other & 0xffff);
        if (!Number.isFinite(rival) || (other & 0x8000) !== (bits & 0x8000)) continue;
        const [mine, its] = [Math.abs(found - value), Math.abs(rival - value)];
        expect(mine <= its).toBe(true);
        if (mine === its) expect(bits & 1).toBe(0);
      }
    }),
    { numRuns: 400 * TIMES },
  );
});
