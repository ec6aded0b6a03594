import fc from 'fast-check';
import { expect, test } from 'vitest';
import { filesOfEqualSize } from './equal-sizes.js';

test('files with the length of another file are found, and no others; empty ones and ones without a length never', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -1, max: 12 }), { maxLength: 30 }), (bytes) => {
      const files = Uint32Array.from(bytes.keys()).reverse();
      const expected = [...files].filter(
        (file) => bytes[file]! > 0 && bytes.some((size, other) => other !== file && size === bytes[file]),
      );
      expect([...filesOfEqualSize(files, Float64Array.from(bytes))]).toEqual(expected);
    }),
  );
});
