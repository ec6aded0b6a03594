import { expect, test } from 'vitest';
import { isWorthSplicing } from './worth-splicing.js';

const photo = { width: 500, height: 375, reducible: true };
const large = { width: 2048, height: 1536, reducible: true };

test('a crop far from the top, or of a part of the width, is worth a small JPEG', () => {
  expect(isWorthSplicing(photo, { x: 0, y: 150, width: 500, height: 200 }, 1)).toBe(true);
  expect(isWorthSplicing(photo, { x: 70, y: 0, width: 300, height: 375 }, 1)).toBe(true);
});

test('a crop of nearly the whole image is not worth it, and a larger image needs a smaller saving', () => {
  expect(isWorthSplicing(photo, { x: 0, y: 0, width: 500, height: 375 }, 1)).toBe(false);
  expect(isWorthSplicing(photo, { x: 0, y: 40, width: 500, height: 300 }, 1)).toBe(false);
  expect(isWorthSplicing(large, { x: 0, y: 160, width: 2048, height: 1200 }, 1)).toBe(true);
  expect(isWorthSplicing(large, { x: 0, y: 0, width: 2048, height: 300 }, 1)).toBe(false);
});

test('a crop of the reduced image counts as the same part', () => {
  expect(isWorthSplicing(large, { x: 0, y: 40, width: 512, height: 300 }, 4)).toBe(true);
  expect(isWorthSplicing(large, { x: 0, y: 0, width: 512, height: 300 }, 4)).toBe(false);
});
