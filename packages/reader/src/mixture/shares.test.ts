import { OptionError } from '@shardtool/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defaultGroup, defaultSourceStreams } from './defaults.js';
import { epochCounts, largestRemainder, wholeShares } from './shares.js';

test('weights are used as decimal numbers, not as floats', () => {
  expect(wholeShares([0.7, 0.3])).toEqual([7n, 3n]);
  expect(wholeShares([1e-7, 3, 0.25])).toEqual([1n, 30_000_000n, 2_500_000n]);
});

test('without weights every sample of all sources is used once, and repeats are rounded half up', () => {
  expect(epochCounts([16, 7])).toEqual([16, 7]);
  expect(epochCounts([16, 7], { repeat: [2, 0.5] })).toEqual([32, 4]);
});

test('each sample of the source that ends an epoch is used once; of equal sources the first ends it', () => {
  expect(epochCounts([100, 50], { weights: [1, 1] })).toEqual([50, 50]);
  expect(epochCounts([100, 50], { weights: [1, 1], end: 'last' })).toEqual([100, 100]);
  expect(epochCounts([100, 50, 10], { weights: [2, 1, 1], end: 1 })).toEqual([100, 50, 50]);
  expect(epochCounts([100, 50], { weights: [2, 1], end: 'first' })).toEqual([100, 50]);
});

test('an epoch has the given number of rows of each source in every batch', () => {
  expect(epochCounts([1000, 100], { perBatch: [192, 64] })).toEqual([192, 64]);
  expect(epochCounts([1000, 100], { perBatch: [192, 64], end: 'last' })).toEqual([192 * 6, 64 * 6]);
  expect(epochCounts([1000, 100], { perBatch: [192, 64], epochSamples: 1000 })).toEqual([192 * 3, 64 * 3]);
});

test('a number of samples is divided completely, as close to the weights as possible', () => {
  const weights = fc.array(fc.double({ min: 1e-6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 1e9 }), (list, total) => {
      const shares = wholeShares(list);
      const counts = largestRemainder(total, shares);
      expect(counts.reduce((a, b) => a + b, 0)).toBe(total);
      const all = list.reduce((a, b) => a + b, 0);
      counts.forEach((count, d) => {
        expect(Math.abs(count - (total * list[d]!) / all)).toBeLessThan(1 + total * 1e-9);
      });
    }),
  );
});

test.each([
  [[16, 0], { weights: [1, 1] }, /Dataset 1 of the mixture has no samples/],
  [[], {}, /at least one dataset/],
  [[16, 7], { weights: [1, 0] }, /weight of a mixture is 0: it must be a number above 0/],
  [[16, 7], { weights: [1, -1] }, /is -1/],
  [[16, 7], { weights: [1, Number.NaN] }, /is NaN/],
  [[16, 7], { weights: [1] }, /weights has 1 entries for 2 datasets/],
  [[16, 7], { weights: [1, 1], repeat: [1, 1] }, /repeat and weights: set only one/],
  [[16, 7], { weights: [1, 1], end: 2 }, /end is 2: the datasets of this mixture are 0 to 1/],
  [[16, 7], { weights: [1, 1], end: 'last', epochSamples: 3 }, /end and samplesPerEpoch both/],
  [[16, 7], { perBatch: [3, 0] }, /perBatch has 0/],
  [
    [12, 3],
    { perBatch: [8, 8] },
    /perBatch takes 8 rows of dataset 1 for each batch, but that dataset has only 3 samples/,
  ],
  [[3, 12], { perBatch: [8, 8], end: 0 }, /perBatch takes 8 rows of dataset 0/],
  [[12, 3], { perBatch: [8, 8], epochSamples: 15 }, /samplesPerEpoch is 15, and perBatch makes batches of 16 rows/],
  [[12, 3], { repeat: [0.01, 0.1] }, /repeat leaves no sample/],
  [[16, 7], { end: 'last' }, /end sets where an epoch with weights/],
] as const)('sizes %j with %j are rejected with a clear message', (sizes, policy, sentence) => {
  const count = () => epochCounts(sizes, policy);
  expect(count).toThrow(OptionError);
  expect(count).toThrow(sentence);
});

test('samplesPerEpoch is divided among sources by size, by repeats, or by the weights of their samples', () => {
  expect(epochCounts([3000, 1000], { epochSamples: 100 })).toEqual([75, 25]);
  expect(epochCounts([3000, 1000], { epochSamples: 100, repeat: [1, 3] })).toEqual([50, 50]);
  expect(epochCounts([3000, 1000, 0], {}, [10, 30, 0])).toEqual([1000, 3000, 0]);
  expect(epochCounts([3, 4], { epochSamples: 7 }, [0.1, 0.3])).toEqual([2, 5]);
  // Explicit shares are kept: weights of samples then only select within a source.
  expect(epochCounts([3000, 1000], { repeat: [1, 1] }, [10, 30])).toEqual([3000, 1000]);
});

test('the same group fits 1, 2, 4, 8 and 16 ranks with batches of 256, and other numbers get another group', () => {
  expect([1, 2, 4, 8, 16].map((ranks) => defaultGroup(256, ranks))).toEqual([16, 16, 16, 16, 16]);
  expect(defaultGroup(64, 8)).toBe(8);
  expect(defaultGroup(60, 5)).toBe(5);
  expect(() => defaultGroup(10, 3)).toThrow(/3 ranks cannot share batches of 10 rows/);
});

test('sources share the number of streams of one dataset', () => {
  expect([0.7, 0.2, 0.1].map((share) => defaultSourceStreams(share * 1000, 1000, 16))).toEqual([144, 48, 32]);
});
