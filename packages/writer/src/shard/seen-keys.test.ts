import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SeenKeys } from './seen-keys.js';

test('a key is known if it was added before, and new otherwise', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ unit: 'grapheme' }), { maxLength: 3000 }), (keys) => {
      const seen = new SeenKeys();
      for (const key of keys) expect(seen.add(key)).toBe(false);
      for (const key of keys) expect(seen.add(key)).toBe(true);
    }),
    { numRuns: 20 },
  );
});
