import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codePointOrderOf, compareCodePoints, sortByCodePoint } from './code-points.js';

const texts = fc.array(fc.string({ unit: 'binary', maxLength: 4 }), { maxLength: 12 });
const byUtf8 = (a: string, b: string): number => Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)));

test('texts are sorted by code point, which is the order of their UTF-8', () => {
  expect(sortByCodePoint(['\u{1f600}', '\uff5e', 'z', 'é'])).toEqual(['z', 'é', '\uff5e', '\u{1f600}']);
  fc.assert(
    fc.property(texts, (given) => {
      expect(sortByCodePoint([...given])).toEqual([...given].sort(byUtf8));
      const compare = codePointOrderOf(given);
      for (const a of given)
        for (const b of given) {
          expect(Math.sign(compareCodePoints(a, b))).toBe(byUtf8(a, b));
          expect(Math.sign(compare(a, b))).toBe(byUtf8(a, b));
        }
    }),
  );
});
