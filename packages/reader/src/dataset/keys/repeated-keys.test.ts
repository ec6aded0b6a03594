import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyRepetitions } from './repeated-keys.js';

function repetitions(keys: readonly string[], parts: number) {
  const repeated = new KeyRepetitions(parts);
  for (let part = 0; part < parts; part++) {
    repeated.begin(part);
    for (const key of keys) repeated.add(key);
  }
  return repeated.found;
}

test('keys that come again are counted, however many parts there are', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 3 }), { maxLength: 300 }),
      fc.integer({ min: 1, max: 7 }),
      (keys, parts) => {
        const { count, examples } = repetitions(keys, parts);
        expect(count).toBe(keys.length - new Set(keys).size);
        expect(examples).toHaveLength(Math.min(10, count));
        for (const key of examples) expect(keys.indexOf(key)).not.toBe(keys.lastIndexOf(key));
      },
    ),
  );
});

test('a million keys that differ in a digit are all different', () => {
  const keys = Array.from({ length: 1_000_000 }, (_, i) => `n01440764/n01440764_${i}`);
  keys.push(keys[123_456]!);
  expect(repetitions(keys, 1)).toEqual({ count: 1, examples: [keys[123_456]] });
});
