import fc from 'fast-check';
import { expect, test } from 'vitest';
import { partAt } from './part-at.js';

test('the part that contains a byte is found, with any empty parts around it', () => {
  const sizes = fc
    .array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 30 })
    .filter((each) => each.some((size) => size > 0));
  fc.assert(
    fc.property(sizes, (parts) => {
      const starts = new Float64Array(parts.length + 1);
      parts.forEach((bytes, i) => {
        starts[i + 1] = starts[i]! + bytes;
      });
      const holders = parts.flatMap((bytes, i) => Array<number>(bytes).fill(i));
      expect(holders.map((_, offset) => partAt(starts, offset))).toEqual(holders);
    }),
  );
});
