import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countBraces } from './braces.js';
import { expandBraces } from './location.js';

test('the number of locations of a brace pattern is computed without creating them', () => {
  expect(countBraces('**/*.jpg')).toBe(1);
  expect(countBraces('{a,b}-{1..3}')).toBe(6);
  expect(countBraces('x{a,b{1..10},{c,d}}')).toBe(13);
  expect(countBraces('{a..z}{1..9..2}')).toBe(130);
  expect(countBraces('\\{a,b\\}{c,d}')).toBe(2);
  expect(countBraces('{a,b}'.repeat(30))).toBe(2 ** 30);
  expect(countBraces('{1..10000000000}')).toBe(1e10);
  expect(countBraces('{'.repeat(200_000))).toBe(1);
  expect(countBraces(`${'{a,'.repeat(100_000)}${'}'.repeat(100_000)}`)).toBe(100_001);
});

test('expanding braces gives as many locations as were counted', () => {
  const part = fc.oneof(fc.constantFrom('a', '-', '/x'), fc.constantFrom('{a,b}', '{0..3}', '{008..011}', '{p,q,r}'));
  fc.assert(
    fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
      expect(expandBraces(parts.join(''))).toHaveLength(countBraces(parts.join('')));
    }),
  );
});
