import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HashTable, mixedBits } from './hash-table.js';

test.each([Uint32Array, Float64Array])(
  'a table of %o finds the same entries as a Map, however the hashes collide',
  (Kind) => {
    fc.assert(
      fc.property(fc.array(fc.nat(300), { maxLength: 400 }), fc.constantFrom(1, 7, 2 ** 16), (words, spread) => {
        const held: number[] = [];
        const hashOf = (word: number) => mixedBits(word) % spread;
        const table = new HashTable(Kind, (entry) => hashOf(held[entry - 1]!), 2);
        const expected = new Map<number, number>();
        for (const word of words) {
          const isIt = (entry: number) => held[entry - 1] === word;
          const before = expected.get(word) ?? 0;
          expect(table.find(hashOf(word), isIt)).toBe(before);
          held.push(word);
          expect(table.place(held.length, hashOf(word), isIt)).toBe(before);
          if (before === 0) expected.set(word, held.length);
        }
        for (const [word, entry] of expected) {
          expect(table.find(hashOf(word), (one) => held[one - 1] === word)).toBe(entry);
        }
        table.clear();
        expect(table.find(hashOf(1), () => true)).toBe(0);
      }),
    );
  },
);

test('hashes of 53 bits are compared by all of their bits', () => {
  const table = new HashTable(Float64Array, (hash) => hash, 2);
  const hashes = Array.from({ length: 1000 }, (_, i) => i * 2 ** 33 + 5);
  for (const hash of hashes) expect(table.place(hash, hash, (entry) => entry === hash)).toBe(0);
  for (const hash of hashes) expect(table.find(hash, (entry) => entry === hash)).toBe(hash);
});
