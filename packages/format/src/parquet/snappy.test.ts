import fc from 'fast-check';
import { snappyUncompress } from 'hyparquet';
import { snappyCompress } from 'hyparquet-writer/src/snappy.js';
import { expect, test } from 'vitest';
import { compressSnappy, decompressSnappy } from './snappy.js';

const repetitive = fc
  .array(fc.tuple(fc.nat({ max: 5 }), fc.nat({ max: 90 })), { maxLength: 60 })
  .map((runs) => Uint8Array.from(runs.flatMap(([byte, length]) => new Array<number>(length).fill(byte))));
const paths = fc
  .array(fc.nat({ max: 99_999 }), { maxLength: 300 })
  .map((numbers) => new TextEncoder().encode(numbers.map((n) => `n0144/n0144_${n}.jpg`).join('')));
const anything = fc.oneof(fc.uint8Array({ maxLength: 300 }), repetitive, paths);

test('bytes are read back unchanged', () => {
  fc.assert(
    fc.property(anything, (bytes) => {
      expect(decompressSnappy(compressSnappy(bytes), bytes.length)).toEqual(bytes);
    }),
  );
});

test('another reader reads the same bytes, and the bytes of another writer can be read', () => {
  fc.assert(
    fc.property(anything, (bytes) => {
      const theirs = new Uint8Array(bytes.length);
      snappyUncompress(compressSnappy(bytes), theirs);
      expect(theirs).toEqual(bytes);
      expect(decompressSnappy(snappyCompress(bytes), bytes.length)).toEqual(bytes);
    }),
  );
});

test('a copy from a large distance and a literal of more than 65,536 bytes are read back unchanged', () => {
  let state = 1;
  const noise = Uint8Array.from({ length: 70_000 }, () => {
    state = Math.imul(state, 1_103_515_245) + 12_345;
    return state >>> 16;
  });
  const bytes = Uint8Array.of(...noise, ...noise.subarray(10_000, 20_000));
  const compressed = compressSnappy(bytes);
  expect(Buffer.compare(decompressSnappy(compressed, bytes.length), bytes)).toBe(0);
  expect(compressed.length).toBeLessThan(72_000);
});

test('damaged bytes throw a RangeError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (tail) => {
      try {
        expect(decompressSnappy(Uint8Array.of(100, ...tail), 100)).toHaveLength(100);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }),
  );
});

test('a length that is impossible for the input throws an error before memory is allocated', () => {
  expect(() => decompressSnappy(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x7f, 0), 34_359_738_367)).toThrow(RangeError);
});
