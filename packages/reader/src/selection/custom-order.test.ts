import { lastAtMost } from '@shardtool/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planEpoch } from '../order/batches.js';
import { firstNumbers } from '../order/units.js';
import { selectInOrder } from './custom-order.js';

/** The samples that come at each position, as the plans of all ranks have them. */
function delivered(order: readonly number[], counts: readonly number[], worldSize: number, streams: number): number[] {
  const { subset, positions } = selectInOrder(order, counts);
  const first = firstNumbers(counts);
  const chosen = firstNumbers(subset.all.counts);
  const samples: number[] = [];
  const perRank = Array.from({ length: worldSize }, (_, rank) => {
    const plan = planEpoch({
      counts: subset.all.counts,
      seed: 5,
      epoch: 2,
      streams,
      blockSamples: 3,
      unit: 'chunk',
      positions,
      rank,
      worldSize,
      globalBatch: worldSize,
      ownOnly: true,
    });
    const blocks = [...plan.blocks()];
    return [...plan.rows()].flatMap(({ block, item }) =>
      Array.from(block, (ordinal, i) => {
        const number = blocks[ordinal]!.samples[item[i]!]!;
        const shard = lastAtMost(chosen, number);
        return first[shard]! + subset.all.rows(shard)![number - chosen[shard]!]!;
      }),
    );
  });
  for (let at = 0; at < order.length; at++) samples.push(perRank[at % worldSize]![Math.floor(at / worldSize)]!);
  return samples;
}

test('every position has the sample that the order says, on any number of ranks and streams', () => {
  const cases = fc
    .array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 6 })
    .filter((counts) => counts.some((count) => count > 0))
    .chain((counts) => {
      const samples = counts.reduce((a, b) => a + b, 0);
      return fc.record({
        counts: fc.constant(counts),
        order: fc.array(fc.integer({ min: 0, max: samples - 1 }), { minLength: 1, maxLength: 40 }),
        worldSize: fc.integer({ min: 1, max: 4 }),
        streamsOfARank: fc.integer({ min: 1, max: 3 }),
      });
    });
  fc.assert(
    fc.property(cases, ({ counts, order, worldSize, streamsOfARank }) => {
      expect(delivered(order, counts, worldSize, worldSize * streamsOfARank)).toEqual(order);
    }),
  );
});

test('another order has another identity, be it of the same samples', () => {
  const identity = (order: number[]) => selectInOrder(order, [2, 3]).subset.identity;
  expect(new Set([identity([0, 1]), identity([1, 0]), identity([0, 1, 1]), identity([0, 2])]).size).toBe(4);
  expect(identity([4, 0])).toBe(identity([4, 0]));
});

test('an order is refused that is empty or names what is no sample', () => {
  expect(() => selectInOrder([], [2])).toThrow('indices names no sample');
  expect(() => selectInOrder([0, 5], [2, 3])).toThrow(
    'indices[1] is 5, which is not the index of a sample: the dataset has the samples 0 to 4.',
  );
  for (const wrong of [-1, 0.5, Number.NaN])
    expect(() => selectInOrder([wrong], [2])).toThrow(`indices[0] is ${wrong}`);
});
