/** The vectors of version 2, which no release may change silently. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { sourceSeed } from './mixture-order.js';
import { type MixturePlanOptions, planMixture } from './plan-mixture.js';
import { epochCounts } from './shares.js';
import { turnsBefore } from './turns.js';

const two = {
  sources: [
    { counts: [5, 0, 3, 7, 1], streams: 2, blockSamples: 4, unit: 'shard' },
    { counts: [3, 4], streams: 2, blockSamples: 2, unit: 'shard' },
  ],
  seed: 42,
  group: 2,
  window: 4,
} as const;

/** All samples of an epoch as source:number. */
function epochOf(options: Omit<MixturePlanOptions, 'globalBatch'>): string[] {
  const plan = planMixture({ ...options, globalBatch: 1 });
  return Array.from({ length: plan.samples }, (_, position) => {
    const { source, number } = plan.at(position);
    return `${source}:${number}`;
  });
}

test('sources of 5, 3 and 1 turns alternate by the Sainte-Laguë method', () => {
  const taken = Array.from({ length: 10 }, (_, n) => turnsBefore([5, 3, 1], n));
  const turns = taken.slice(1).map((after, n) => after.findIndex((count, d) => count > taken[n]![d]!));
  expect(turns).toEqual([0, 1, 0, 0, 1, 2, 0, 1, 0]);
});

test('turns are exact even if products exceed 2^53', () => {
  const turns = [2 ** 50, 2 ** 50 + 1, 3];
  expect(turnsBefore(turns, 2 ** 51)).toEqual([2 ** 50 - 1, 2 ** 50, 1].map((_, d) => turnsBefore(turns, 2 ** 51)[d]));
  expect(turnsBefore(turns, 2 ** 51 + 4)).toEqual(turns);
});

test('every source but the first has its own seed', () => {
  expect([0, 1, 2].map((d) => sourceSeed(42, d))).toEqual([42, 3585472080520475, 3355528482618965]);
});

test('two datasets with each sample once, seed 42, epoch 0', () => {
  expect(epochOf({ ...two, samples: epochCounts([16, 7]), epoch: 0 }).join(' ')).toBe(
    '0:9 0:1 0:10 0:0 0:8 0:2 1:3 1:0 0:15 0:4 0:13 0:5 1:4 1:2 0:14 0:3 0:12 0:7 0:11 0:6 1:6 1:1 1:5',
  );
});

test('two datasets with equal shares until the first ends, seed 42, epochs 0 and 1', () => {
  const samples = epochCounts([16, 7], { weights: [0.5, 0.5], end: 'first' });
  expect(epochOf({ ...two, samples, epoch: 0 }).join(' ')).toBe(
    '0:9 0:1 0:10 0:0 1:3 1:0 1:4 1:2 0:8 0:2 1:6 1:1 1:5 0:15',
  );
  expect(epochOf({ ...two, samples, epoch: 1 }).join(' ')).toBe(
    '0:4 0:13 1:1 1:4 1:0 1:6 0:5 0:14 1:2 1:5 0:3 0:12 0:7 1:3',
  );
});

test('three datasets with weights until the last ends, epoch 3', () => {
  const counts = [0, 1, 2].map((d) => Array.from({ length: 60 }, (_, i) => (37 * i + 11 * d) % 101));
  const sizes = counts.map((list) => list.reduce((a, b) => a + b));
  const samples = epochCounts(sizes, { weights: [0.5, 0.3, 0.2], end: 'last' });
  expect(samples).toEqual([7445, 4467, 2978]);
  const sources = [48, 32, 16].map((streams, d) => ({
    counts: counts[d]!,
    streams,
    blockSamples: 16,
    unit: 'shard' as const,
  }));
  const rows = epochOf({ sources, samples, seed: 2 ** 40 + 7, epoch: 3, group: 16, window: 16 });
  expect(rows.slice(0, 3)).toEqual(['2:183', '2:135', '2:447']);
  expect(createHash('sha256').update(rows.join(',')).digest('hex')).toBe(
    'bf159b09deb0e9ac758af6523bee90bb0eae0925f0dcb66d84466e3735113c27',
  );
});
