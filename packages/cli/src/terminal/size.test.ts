import { expect, test } from 'vitest';
import { countOf, formatSize, parseSize } from './size.js';

test('sizes are read in powers of ten and of two, with or without a space, in any case', () => {
  expect(parseSize('256MB')).toBe(256_000_000);
  expect(parseSize('64MiB')).toBe(67_108_864);
  expect(parseSize('1.5 gb')).toBe(1_500_000_000);
  expect(parseSize('1000')).toBe(1000);
});

test.each(['lots', '12 parsecs', '-1', '', 'MB', '1e6', 'NaN'])('%j is not a valid size', (text) => {
  expect(parseSize(text)).toBeUndefined();
});

test('sizes are shown with two or three digits', () => {
  const shown = [0, 1, 999, 1000, 9949, 9950, 999_499, 999_500, 1_234_567, 268_435_456, 2.5e15].map(formatSize);
  expect(shown).toEqual('0 B,1 B,999 B,1.0 kB,9.9 kB,10 kB,999 kB,1.0 MB,1.2 MB,268 MB,2.5 PB'.split(','));
});

test('the unit of one item is singular', () => {
  expect([countOf(1, 'shard'), countOf(1281, 'shard'), countOf(0, 'class', 'classes')]).toEqual([
    '1 shard',
    '1,281 shards',
    '0 classes',
  ]);
});
