import { expect, test } from 'vitest';
import { gaussianWeights } from './gaussian.js';

test.each([
  [1, 0.5],
  [3, 0.1],
  [5, 1.3],
  [23, 2],
  [255, 0.1],
  [255, 100],
])('a filter of %i pixels with sigma %d sums to its bits, and every weight is within its steps', (size, sigma) => {
  const { weights, bits } = gaussianWeights(size, sigma);
  const radius = size >> 1;
  expect(weights.length % 2).toBe(0);
  const sum = weights.reduce((all, weight, distance) => all + (distance === 0 ? weight : 2 * weight), 0);
  expect(sum).toBe(2 ** bits);
  const exact = Array.from({ length: size }, (_, i) => Math.exp(-((i - radius) ** 2) / (2 * sigma ** 2)));
  const total = exact.reduce((all, value) => all + value);
  for (let distance = 1; distance <= radius; distance++) {
    expect(Math.abs(weights[distance]! / 2 ** bits - exact[radius + distance]! / total)).toBeLessThanOrEqual(
      0.5 / 2 ** bits,
    );
  }
  // Sums of 255 with 6 fraction bits fit 32 bits.
  expect((255 * 2 ** 6 + 0.5) * 2 ** bits).toBeLessThan(2 ** 31);
});
