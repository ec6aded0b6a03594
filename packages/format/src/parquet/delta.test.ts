import fc from 'fast-check';
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js';
import { expect, test } from 'vitest';
import { decodeDelta, encodeDelta } from './delta.js';

const near = fc.array(fc.integer({ min: -(2 ** 30), max: 2 ** 30 }), { maxLength: 400 });
const small = fc.array(fc.nat({ max: 300 }), { maxLength: 400 });
const rising = near.map((steps) => {
  let at = 2 ** 51;
  return steps.map((step) => {
    at += step;
    return at;
  });
});

test('integers are read back unchanged, at any length of the last block or miniblock', () => {
  fc.assert(
    fc.property(fc.oneof(near, small, rising), (numbers) => {
      const values = Float64Array.from(numbers);
      expect(decodeDelta({ bytes: encodeDelta(values)!, at: 0 }, values.length)).toEqual(values);
    }),
  );
});

test('hyparquet reads the same integers', () => {
  fc.assert(
    fc.property(fc.oneof(near, small, rising), (numbers) => {
      const bytes = encodeDelta(Float64Array.from(numbers))!;
      const theirs = new BigInt64Array(numbers.length);
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      if (numbers.length > 0) deltaBinaryUnpack({ view, offset: 0 }, numbers.length, theirs);
      expect(Array.from(theirs, Number)).toEqual(numbers);
    }),
  );
});

test('the cursor is right after the integers, so that more data can follow', () => {
  const bytes = encodeDelta(Float64Array.of(5, 1, 7))!;
  const cursor = { bytes: Uint8Array.of(...bytes, 9), at: 0 };
  decodeDelta(cursor, 3);
  expect(cursor.at).toBe(bytes.length);
});

test('neighbours that differ by 2^31 or more are left to the plain encoding', () => {
  expect(encodeDelta(Float64Array.of(0, 2 ** 31 - 1, 0))).not.toBeNull();
  expect(encodeDelta(Float64Array.of(0, 2 ** 31))).toBeNull();
  expect(encodeDelta(Float64Array.of(2 ** 53))).toBeNull();
});

test('damaged bytes give numbers or throw a RangeError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat({ max: 300 }), (tail, count) => {
      const bytes = Uint8Array.of(
        128,
        1,
        4,
        (count & 127) | (count > 127 ? 128 : 0),
        ...(count > 127 ? [2] : []),
        ...tail,
      );
      try {
        expect(decodeDelta({ bytes, at: 0 }, count)).toHaveLength(count);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }),
  );
});
