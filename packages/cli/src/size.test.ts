import { expect, test } from 'vitest';
import { formatSize, parseSize } from './size.js';

test('sizes are read in powers of ten and of two, with or without a space, in any case', () => {
  expect(parseSize('256MB')).toBe(256_000_000);
  expect(parseSize('64MiB')).toBe(67_108_864);
  expect(parseSize('1.5 gb')).toBe(1_500_000_000);
  expect(parseSize('1000')).toBe(1000);
});

test('what is no size is an error that shows how sizes are written', () => {
  expect(() => parseSize('lots')).toThrow('"lots" is not a size; write 256MB');
  expect(() => parseSize('12 parsecs')).toThrow('not a size');
  expect(() => parseSize('-1')).toThrow('not a size');
});

test('sizes are shown with at most two digits before the unit changes', () => {
  expect(formatSize(0)).toBe('0 B');
  expect(formatSize(1_234_567)).toBe('1.2 MB');
  expect(formatSize(268_435_456)).toBe('268 MB');
});
