import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EqualSizes } from './equal-sizes.js';

const sizes = fc.array(fc.integer({ min: -1, max: 12 }), { maxLength: 30 });

test('only files that share their length with another file or image are found, never empty files or files without a length', () => {
  fc.assert(
    fc.property(sizes, fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 4 }), (bytes, others) => {
      const files = Uint32Array.from(bytes.keys()).reverse();
      const equal = new EqualSizes(files, Float64Array.from(bytes));
      for (const size of others) equal.note(size);
      const expected = [...files].filter(
        (file) =>
          bytes[file]! > 0 &&
          (others.includes(bytes[file]!) || bytes.some((size, other) => other !== file && size === bytes[file])),
      );
      expect([...equal.candidates()]).toEqual(expected);
      for (let size = 1; size <= 12; size++) expect(equal.has(size)).toBe(bytes.includes(size));
    }),
  );
});
