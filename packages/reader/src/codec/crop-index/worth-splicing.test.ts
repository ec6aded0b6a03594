import { expect, test } from 'vitest';
import { isWorthSplicing } from './worth-splicing.js';

const photo = { width: 500, height: 375, reducible: true };
const large = { width: 2048, height: 1536, reducible: true };

test('a small JPEG is worth it for a crop far from the top or of part of the width', () => {
  expect(isWorthSplicing(photo, { x: 0, y: 150, width: 500, height: 200 }, 1)).toBe(true);
  expect(isWorthSplicing(photo, { x: 70, y: 0, width: 300, height: 375 }, 1)).toBe(true);
});

test('a small JPEG is not worth it for a crop of nearly the whole image, and a larger image needs a smaller saving', () => {
  expect(isWorthSplicing(photo, { x: 0, y: 0, width: 500, height: 375 }, 1)).toBe(false);
  expect(isWorthSplicing(photo, { x: 0, y: 40, width: 500, height: 300 }, 1)).toBe(false);
  expect(isWorthSplicing(large, { x: 0, y: 160, width: 2048, height: 1200 }, 1)).toBe(true);
  expect(isWorthSplicing(large, { x: 0, y: 0, width: 2048, height: 300 }, 1)).toBe(false);
});

test('a crop of a reduced image counts like the same part of the full image', () => {
  expect(isWorthSplicing(large, { x: 0, y: 40, width: 512, height: 300 }, 4)).toBe(true);
  expect(isWorthSplicing(large, { x: 0, y: 0, width: 512, height: 300 }, 4)).toBe(false);
});
