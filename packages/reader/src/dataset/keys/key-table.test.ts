import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyTable } from './key-table.js';

test('every key is found with its number, and no other key is found', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ unit: 'grapheme' }), { maxLength: 300 }), fc.string(), (keys, other) => {
      const table = new KeyTable(keys.length);
      table.add(keys.slice(0, 7));
      table.add(keys.slice(7));
      keys.forEach((key, number) => {
        expect(table.numberOf(key)).toBe(number);
      });
      if (!keys.includes(other)) expect(table.numberOf(other)).toBe(-1);
    }),
  );
});

test('for two equal keys the first is found', () => {
  const table = new KeyTable(3);
  table.add(['a', 'b', 'a']);
  expect(table.numberOf('a')).toBe(0);
});
