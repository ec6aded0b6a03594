import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decompressLz4 } from './lz4.js';

test('a block with long literals and overlapping copies is decompressed', () => {
  // 20 literals, a copy of 4 + 15 + 3 bytes from 1 byte before, then 5 literals.
  const letters = Buffer.from('abcdefghijklmnopqrst');
  const block = Buffer.concat([Buffer.of(0xff, 5), letters, Buffer.of(1, 0, 3, 0x50), Buffer.from('vwxyz')]);
  expect(Buffer.from(decompressLz4(block, 47)).toString()).toBe(`${letters}${'t'.repeat(22)}vwxyz`);
  expect(decompressLz4(Buffer.of(0), 0)).toHaveLength(0);
});

test('damaged bytes throw a RangeError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat({ max: 300 }), (bytes, length) => {
      try {
        expect(decompressLz4(bytes, length)).toHaveLength(length);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }),
  );
});

test('a length that is impossible for the input throws an error before memory is allocated', () => {
  expect(() => decompressLz4(Uint8Array.of(0xff, 0xff, 0x7f), 34_359_738_367)).toThrow(RangeError);
});
