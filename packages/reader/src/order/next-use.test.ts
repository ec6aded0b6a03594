import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planEpoch } from './batches.js';
import { epochOrder, type OrderOptions, streamLength } from './epoch-order.js';
import { firstNeed, nextUse } from './next-use.js';

const world = fc.record({
  counts: fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 2, maxLength: 12 }),
  seed: fc.integer({ min: 0, max: 2 ** 40 }),
  streams: fc.constantFrom(4, 8, 12),
  blockSamples: fc.integer({ min: 1, max: 9 }),
  unit: fc.constantFrom('shard' as const, 'chunk' as const),
});

/** The positions where blocks of a pass are loaded that local ranks read, found by walking through all of them. */
function walked(
  options: Omit<OrderOptions, 'epoch'>,
  pass: number,
  isLocal: (s: number) => boolean,
): Map<number, number> {
  const order = epochOrder({ ...options, epoch: pass });
  const needs = new Map<number, number>();
  for (let s = 0; s < options.streams; s++) {
    if (!isLocal(s)) continue;
    for (let block = 0, i = 0; i < streamLength(order, s); block++) {
      const { samples } = order.block(s, block);
      for (const number of samples) needs.set(number, i * options.streams + s);
      i += samples.length;
    }
  }
  return needs;
}

test('the first use of consecutive samples equals that of a walk through all blocks', () => {
  fc.assert(
    fc.property(
      world,
      fc.nat(5),
      fc.nat(),
      fc.nat(20),
      fc.constantFrom(1, 2, 4),
      (options, pass, pick, length, ranks) => {
        const isLocal = (s: number) => s % ranks === 0;
        const order = epochOrder({ ...options, epoch: pass });
        const shard = pick % options.counts.length;
        const before = options.counts.slice(0, shard).reduce((sum, count) => sum + count, 0);
        // In one unit: a shard, or a chunk of one.
        const unit =
          options.unit === 'shard' ? options.counts[shard]! : Math.min(options.blockSamples, options.counts[shard]!);
        const count = 1 + (length % unit);
        const needs = walked(options, pass, isLocal);
        const expected = Math.min(
          ...Array.from({ length: count }, (_, i) => needs.get(before + i) ?? Number.POSITIVE_INFINITY),
        );
        expect(firstNeed(order, before, count, isLocal)).toBe(expected);
      },
    ),
  );
});

test('samples that no local rank needs within the horizon count as never needed', () => {
  const options = { counts: [10, 10], seed: 1, streams: 4, blockSamples: 2, unit: 'shard' as const };
  const readers = { orderOf: (epoch: number) => epochOrder({ ...options, epoch }), isLocal: () => false, horizon: 3 };
  expect(nextUse(readers, 0, 0, 5)).toBe(Number.POSITIVE_INFINITY);
  expect(nextUse({ ...readers, isLocal: () => true }, 0, 0, 5)).toBeGreaterThanOrEqual(20);
  expect(planEpoch({ ...options, epoch: 0, globalBatch: 4 }).samples).toBe(20);
});
