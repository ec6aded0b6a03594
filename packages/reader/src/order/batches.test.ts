import { expect, test } from 'vitest';
import { type EpochPlan, legalWorldSizes, type PlanOptions, planEpoch } from './batches.js';

const base = { seed: 7, epoch: 2, streams: 4, blockSamples: 3 };

/** The sample indices of each batch; padded rows are negative numbers minus one. */
function batchesOf(plan: EpochPlan): number[][] {
  const blocks = [...plan.blocks()];
  return Array.from(plan.rows(), ({ block, item, valid }) =>
    Array.from(block, (ordinal, row) => {
      const number = blocks[ordinal]!.samples[item[row]!]!;
      return valid[row] === 1 ? number : -number - 1;
    }),
  );
}

const ranks = (options: Omit<PlanOptions, 'rank'>) =>
  Array.from({ length: options.worldSize ?? 1 }, (_, rank) => batchesOf(planEpoch({ ...options, rank })));

test('the last batch is dropped, filled with marked rows, or smaller', () => {
  const options = { ...base, counts: [10], globalBatch: 4 };
  const sizes = (lastBatch: 'drop' | 'pad' | 'partial') =>
    batchesOf(planEpoch({ ...options, lastBatch })).map((batch) => batch.length);
  expect(sizes('drop')).toEqual([4, 4]);
  expect(sizes('pad')).toEqual([4, 4, 4]);
  expect(sizes('partial')).toEqual([4, 4, 2]);
  const padded = batchesOf(planEpoch({ ...options, lastBatch: 'pad' }));
  expect(padded[2]!.slice(2)).toEqual(padded[0]!.slice(0, 2).map((number) => -number - 1));
});

test('a rank without samples of a partial last batch gets one marked row', () => {
  const each = ranks({ ...base, counts: [9], globalBatch: 4, worldSize: 4, lastBatch: 'partial' });
  expect(each.map((batches) => batches.map((batch) => batch.length))).toEqual(Array(4).fill([1, 1, 1]));
  expect(each.map((batches) => batches[2]![0]! >= 0)).toEqual([true, false, false, false]);
});

test('one shard of five samples and 64 ranks give every rank the same number of batches', () => {
  const each = ranks({ ...base, streams: 192, counts: [5], globalBatch: 128, worldSize: 64 });
  expect(new Set(each.map((batches) => batches.map((batch) => batch.length).join())).size).toBe(1);
  expect(
    each
      .flat(2)
      .filter((number) => number >= 0)
      .sort(),
  ).toEqual([0, 1, 2, 3, 4]);
});

test('an empty dataset has no batches', () => {
  for (const lastBatch of ['drop', 'pad', 'partial'] as const) {
    const plan = planEpoch({ ...base, counts: [0, 0], globalBatch: 4, lastBatch });
    expect([plan.batches, [...plan.rows()], [...plan.blocks()]]).toEqual([0, [], []]);
  }
});

test('the error for a number of ranks that does not divide lists those that do', () => {
  expect(legalWorldSizes(192, 240)).toEqual([1, 2, 3, 4, 6, 8, 12, 16, 24, 48]);
  expect(() => planEpoch({ ...base, streams: 192, counts: [9], globalBatch: 240, worldSize: 5 })).toThrow(
    '5 ranks cannot share 192 streams and batches of 240 rows evenly: use 1, 2, 3, 4, 6, 8, 12, 16, 24, 48 ranks',
  );
});

test('a position after the end of the epoch is rejected', () => {
  expect(() => planEpoch({ ...base, counts: [9], globalBatch: 3, position: 10 })).toThrow('position is 10');
});

test('consecutive short epochs use every sample once per pass', () => {
  const epochs = Array.from({ length: 5 }, (_, epoch) =>
    batchesOf(planEpoch({ ...base, epoch, counts: [6, 4], globalBatch: 2, epochSamples: 4 })).flat(),
  );
  expect(epochs.map((numbers) => numbers.length)).toEqual([4, 4, 4, 4, 4]);
  const passes = epochs.flat();
  const whole = (pass: number) =>
    batchesOf(planEpoch({ ...base, epoch: pass, counts: [6, 4], globalBatch: 10 })).flat();
  expect(passes).toEqual([...whole(0), ...whole(1)]);
});

test('an epoch longer than a pass continues with the next pass, and each block records its pass', () => {
  const plan = planEpoch({ ...base, epoch: 1, counts: [5], globalBatch: 6, epochSamples: 12 });
  const numbers = batchesOf(plan).flat();
  const whole = (pass: number) => batchesOf(planEpoch({ ...base, epoch: pass, counts: [5], globalBatch: 5 })).flat();
  expect(numbers).toEqual([...whole(2).slice(2), ...whole(3), ...whole(4).slice(0, 4)]);
  expect([...new Set(Array.from(plan.blocks(), (block) => block.pass))]).toEqual([2, 3, 4]);
});

test('epochSamples without any sample is rejected', () => {
  expect(() => planEpoch({ ...base, counts: [0], globalBatch: 1, epochSamples: 4 })).toThrow('there are no samples');
});

test('a plan from a position in the middle loads the rest of the current blocks, and nothing before it', () => {
  const options = { ...base, counts: Array(100).fill(10), globalBatch: 20 };
  const [all, rest] = [planEpoch(options), planEpoch({ ...options, position: 900 })];
  expect(batchesOf(rest)).toEqual(batchesOf(all).slice(45));
  const blocks = [...rest.blocks()];
  expect(blocks.slice(0, 4).map((block) => block.from + block.uses)).toEqual(
    blocks.slice(0, 4).map((block) => block.samples.length),
  );
  expect(blocks.reduce((sum, block) => sum + block.uses, 0)).toBe(100);
});

test('without shuffling, padded rows and positions are not moved', () => {
  const plan = planEpoch({ ...base, streams: 1, counts: [3, 2], globalBatch: 3, shuffle: false, lastBatch: 'pad' });
  expect(batchesOf(plan)).toEqual([
    [0, 1, 2],
    [3, 4, -1],
  ]);
  expect(Array.from(plan.rows(), (batch) => batch.position)).toEqual([3, 5]);
});
