import { expect, test } from 'vitest';
import { planEpoch } from '../../order/batches.js';
import { keepIndexes } from './memory.js';

/** The number of indexes that a rank of `ranks` keeps. */
function kept(
  unit: 'shard' | 'chunk',
  { shards, size, ranks }: { shards: number; size: number; ranks: number },
): number {
  let count = 0;
  const files = { keepIndexes: (most: number) => (count = most) };
  const order = { unit, streams: 192, blockSamples: 64, streamRanks: ranks, isScattered: false };
  keepIndexes({ size, shards: { length: shards }, files }, order, { aspectBuckets: undefined });
  return count;
}

test('if chunks come from all shards, every rank keeps the indexes of all of them, up to two million rows', () => {
  for (const ranks of [1, 8, 192]) expect(kept('chunk', { shards: 128, size: 1_280_000, ranks })).toBe(128);
  expect(kept('chunk', { shards: 383, size: 3_830_000, ranks: 8 })).toBe(200);
  expect(kept('chunk', { shards: 300, size: 300_000_000, ranks: 8 })).toBe(64);
});

test('if shards are read one after the other, a rank keeps the indexes of one to two shards per stream', () => {
  expect(kept('shard', { shards: 10_000, size: 100_000_000, ranks: 1 })).toBe(258);
  expect(kept('shard', { shards: 10_000, size: 100_000_000, ranks: 8 })).toBe(47);
  expect(kept('shard', { shards: 10_000, size: 500_000, ranks: 1 })).toBe(400);
});

test('the indexes that a rank keeps are enough to read each of them about as often as with two per stream', () => {
  const read = (shards: number, shardSamples: number, limit: number) => {
    const counts = new Float64Array(shards).fill(shardSamples);
    const order = { counts, seed: 3, epoch: 0, streams: 192, blockSamples: 64 };
    const recent = new Set<number>();
    let reads = 0;
    for (const { pieces } of planEpoch({ ...order, globalBatch: 64 }).blocks()) {
      for (const { shard } of pieces) {
        if (!recent.delete(shard)) reads++;
        recent.add(shard);
        if (recent.size > limit) recent.delete(recent.values().next().value!);
      }
    }
    return reads;
  };
  for (const [shards, shardSamples] of [
    [600, 2000],
    [1500, 200],
    [3000, 64],
  ] as const) {
    const limit = kept('shard', { shards, size: shards * shardSamples, ranks: 1 });
    expect(read(shards, shardSamples, limit)).toBeLessThanOrEqual(1.05 * read(shards, shardSamples, 400));
  }
});
