import { expect, test } from 'vitest';
import { keepIndexes } from './memory.js';

/** The number of indexes that a rank of `ranks` keeps. */
function kept(
  unit: 'shard' | 'chunk',
  { shards, size, ranks }: { shards: number; size: number; ranks: number },
): number {
  let count = 0;
  const files = { keepIndexes: (most: number) => (count = most) };
  const order = { unit, streams: 192, streamRanks: ranks, isScattered: false };
  keepIndexes({ size, shards: { length: shards }, files }, order, { aspectBuckets: undefined });
  return count;
}

test('if chunks come from all shards, every rank keeps the indexes of all of them, up to two million rows', () => {
  for (const ranks of [1, 8, 192]) expect(kept('chunk', { shards: 128, size: 1_280_000, ranks })).toBe(128);
  expect(kept('chunk', { shards: 383, size: 3_830_000, ranks: 8 })).toBe(200);
  expect(kept('chunk', { shards: 300, size: 300_000_000, ranks: 8 })).toBe(64);
});

test('if shards are read one after the other, a rank keeps the indexes of two shards per stream', () => {
  expect(kept('shard', { shards: 10_000, size: 100_000_000, ranks: 1 })).toBe(400);
  expect(kept('shard', { shards: 10_000, size: 100_000_000, ranks: 8 })).toBe(64);
});
