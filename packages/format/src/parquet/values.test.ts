import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeLevels, encodeLevels } from './levels.js';
import { type ColumnValues, decodeValues, encodeValues } from './values.js';

const columns: fc.Arbitrary<ColumnValues> = fc.oneof(
  fc.array(fc.string({ unit: 'grapheme' })).map((values) => ({ type: 'string' as const, values })),
  fc.array(fc.maxSafeInteger()).map((numbers) => ({ type: 'int64' as const, values: Float64Array.from(numbers) })),
  fc.array(fc.nat()).map((numbers) => ({ type: 'int64' as const, values: Float64Array.from(numbers) })),
  fc.int32Array().map((values) => ({ type: 'int32' as const, values })),
  fc.uint32Array().map((values) => ({ type: 'uint32' as const, values })),
  fc.float64Array().map((values) => ({ type: 'double' as const, values })),
  fc.array(fc.nat({ max: 1 })).map((bits) => ({ type: 'bool' as const, values: Uint8Array.from(bits) })),
);

test('the values of a column are read back unchanged', () => {
  fc.assert(
    fc.property(columns, (column) => {
      expect(decodeValues(column.type, encodeValues(column), column.values.length)).toEqual(column);
    }),
  );
});

test('bytes for a different number of values throw a RangeError', () => {
  fc.assert(
    fc.property(columns, fc.nat({ max: 200 }), (column, count) => {
      // Booleans fill whole bytes, so their number is not visible in the length.
      fc.pre(count !== column.values.length && column.type !== 'bool');
      expect(() => decodeValues(column.type, encodeValues(column), count)).toThrow(RangeError);
    }),
  );
});

test('the flags of rows with a value are read back unchanged', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 1 })), (bits) => {
      const present = bits.includes(0) ? Uint8Array.from(bits) : null;
      expect(decodeLevels(encodeLevels(present, bits.length), bits.length)).toEqual(present);
    }),
  );
});
