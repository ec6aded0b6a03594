import { expect, test } from 'vitest';
import { fetchShare } from './fetch-share.js';

test('a single machine fetches what does not fit its cache, and everything without a cache', () => {
  expect(fetchShare(0, 1)).toBe(1);
  for (const cached of [0.25, 0.5, 0.75]) expect(fetchShare(cached, 1)).toBeCloseTo(1 - cached, 1);
  expect(fetchShare(1, 1)).toBe(0);
  expect(fetchShare(3, 4)).toBe(0);
});

// From a walk over version 1 of the order with 8,000 pieces.
test.each([
  [2, 0.5, 0.25],
  [4, 0.25, 0.45],
  [8, 0.125, 0.59],
  [8, 0.5, 0.22],
])('%i machines that keep %d of the data each fetch about %d of what they read', (machines, cached, share) => {
  expect(Math.abs(fetchShare(cached, machines) - share)).toBeLessThan(0.06);
});
