import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Groups, joinNear, NEAR_BITS } from './near-duplicates.js';

function ones(word: number): number {
  return word.toString(2).replaceAll('0', '').length;
}

/** Compares all pairs. */
function compared(hashes: Uint32Array, owners: Uint32Array, count: number): number[] {
  const groups = new Groups(count);
  for (let a = 0; a < owners.length; a++) {
    for (let b = 0; b < a; b++) {
      const low = (hashes[2 * a]! ^ hashes[2 * b]!) >>> 0;
      const high = (hashes[2 * a + 1]! ^ hashes[2 * b + 1]!) >>> 0;
      if (ones(low) + ones(high) <= NEAR_BITS) groups.join(owners[a]!, owners[b]!);
    }
  }
  return Array.from({ length: count }, (_, i) => groups.first(i));
}

/** Random hashes, many of which differ from another in a few bits. */
const word = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const clusters = fc.array(
  fc.record({ low: word, high: word, flips: fc.array(fc.array(fc.nat(63), { maxLength: 7 }), { maxLength: 4 }) }),
  { maxLength: 8 },
);

test('exactly the pairs that differ in at most four bits are joined, as by comparing all pairs', () => {
  fc.assert(
    fc.property(clusters, fc.integer({ min: 1, max: 3 }), (given, each) => {
      const words = given.flatMap(({ low, high, flips }) =>
        [[], ...flips].flatMap((bits) => {
          const pair = [low, high];
          for (const bit of bits) pair[bit >> 5]! ^= 1 << (bit & 31);
          return pair;
        }),
      );
      const hashes = Uint32Array.from(words);
      const owners = Uint32Array.from({ length: words.length / 2 }, (_, i) => Math.floor(i / each));
      const count = Math.ceil(owners.length / each);
      const groups = new Groups(count);
      joinNear(hashes, owners, groups);
      expect(Array.from({ length: count }, (_, i) => groups.first(i))).toEqual(compared(hashes, owners, count));
    }),
  );
});

test('any four bits may differ, but not five', () => {
  fc.assert(
    fc.property(word, word, fc.uniqueArray(fc.nat(63), { minLength: 4, maxLength: 5 }), (low, high, bits) => {
      const pair = [low, high];
      for (const bit of bits) pair[bit >> 5]! ^= 1 << (bit & 31);
      const groups = new Groups(2);
      joinNear(Uint32Array.from([low, high, ...pair]), Uint32Array.of(0, 1), groups);
      expect(groups.first(1)).toBe(bits.length === 4 ? 0 : 1);
    }),
  );
});
