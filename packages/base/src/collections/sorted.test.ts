import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lastAtMost, lowerBound, partitionPoint } from './sorted.js';

const sorted = fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 30 }).map((list) => list.sort((a, b) => a - b));

test('lowerBound finds the first value that is at least the given one', () => {
  fc.assert(
    fc.property(sorted, fc.integer({ min: -1, max: 21 }), (list, value) => {
      const found = list.findIndex((entry) => entry >= value);
      expect(lowerBound(list, value)).toBe(found === -1 ? list.length : found);
    }),
  );
});

test('lastAtMost finds the last value that is at most the given one, and 0 if there is none', () => {
  fc.assert(
    fc.property(sorted, fc.integer({ min: -1, max: 21 }), fc.nat(30), (list, value, most) => {
      const count = Math.min(most, list.length);
      const found = list.slice(0, count).findLastIndex((entry) => entry <= value);
      expect(lastAtMost(list, value, count)).toBe(Math.max(0, found));
    }),
  );
});

test('partitionPoint stays within the given range', () => {
  expect(partitionPoint(3, 7, () => true)).toBe(7);
  expect(partitionPoint(3, 7, () => false)).toBe(3);
  expect(partitionPoint(3, 7, (index) => index < 5)).toBe(5);
});
