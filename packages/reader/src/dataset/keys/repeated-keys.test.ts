import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyRepetitions } from './repeated-keys.js';

function repetitions(keys: readonly string[], parts: number) {
  const repeated = new KeyRepetitions(keys.length, parts);
  for (let part = 0; part < parts; part++) {
    repeated.begin(part);
    for (const key of keys) repeated.add(key);
    repeated.end();
  }
  for (const key of keys) if (repeated.lacksExamples) repeated.addExample(key);
  return repeated.found;
}

test('repeated keys are counted for any number of parts, and the first ones are the examples', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 3 }), { maxLength: 300 }),
      fc.integer({ min: 1, max: 7 }),
      (keys, parts) => {
        const again = keys.filter((key, i) => keys.indexOf(key) < i);
        expect(repetitions(keys, parts)).toEqual({ count: again.length, examples: again.slice(0, 10) });
      },
    ),
  );
});

test('many keys that differ in one digit are distinguished', () => {
  const keys = Array.from({ length: 200_000 }, (_, i) => `n01440764/n01440764_${i}`);
  keys.push(keys[123_456]!);
  expect(repetitions(keys, 1)).toEqual({ count: 1, examples: [keys[123_456]] });
});
