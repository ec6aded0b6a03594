import { lastAtMost } from '@shardtool/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planEpoch } from '../order/batches.js';
import { planGroups } from '../order/groups.js';
import { firstNumbers } from '../order/units.js';
import { type Indices, selectInOrder } from './custom-order.js';

/** The samples at each position, from the plans of all ranks. */
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

test('every position has the sample of the custom order, with any number of ranks and streams', () => {
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

test('groups stay together on one rank and in one batch, with any number of ranks and streams, and after any batch', () => {
  const cases = fc.record({
    counts: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
    groupSize: fc.integer({ min: 1, max: 4 }),
    groups: fc.integer({ min: 1, max: 15 }),
    worldSize: fc.integer({ min: 1, max: 4 }),
    streamsOfARank: fc.integer({ min: 1, max: 3 }),
    blockSamples: fc.integer({ min: 1, max: 9 }),
    batchGroups: fc.integer({ min: 1, max: 3 }),
    lastBatch: fc.constantFrom('pad' as const, 'drop' as const, 'partial' as const),
    epochGroups: fc.option(fc.integer({ min: 1, max: 20 }), { nil: undefined }),
    begin: fc.nat(),
    seed: fc.nat(),
  });
  fc.assert(
    fc.property(cases, (one) => {
      const { counts, groupSize, groups, worldSize, batchGroups, lastBatch, epochGroups } = one;
      const samples = counts.reduce((a, b) => a + b, 0);
      const indices = Array.from({ length: groups }, (_, g) =>
        Array.from({ length: groupSize }, (_, i) => (g * 7 + i * 3 + one.seed) % samples),
      );
      const { subset, positions } = selectInOrder(indices, counts);
      const { counts: chosenCounts } = subset.all;
      const chosen = firstNumbers(chosenCounts);
      const first = firstNumbers(counts);
      const length = epochGroups ?? groups;
      const globalBatch = batchGroups * groupSize * worldSize;
      const begin = Math.min(length, (one.begin % 4) * batchGroups * worldSize);
      const perRank = Array.from({ length: worldSize }, (_, rank) => {
        const plan = planGroups({
          ...{
            counts: chosenCounts,
            positions,
            groupSize,
            seed: 5,
            epoch: 0,
            unit: 'chunk',
            rank,
            worldSize,
            globalBatch,
          },
          ...{ streams: worldSize * one.streamsOfARank, blockSamples: one.blockSamples, lastBatch },
          ...{ position: begin * groupSize, epochSamples: epochGroups && epochGroups * groupSize },
        });
        const blocks = [...plan.blocks()];
        for (const { samples: of, pieces } of blocks) {
          expect([...of]).toEqual(
            pieces.flatMap(({ number, count }) => Array.from({ length: count }, (_, i) => number + i)),
          );
        }
        const uses = blocks.map(() => 0);
        const batches = [...plan.rows()].map(({ block, item, valid }) =>
          Array.from(block, (ordinal, i) => {
            uses[ordinal]!++;
            const number = blocks[ordinal]!.samples[item[i]!]!;
            const shard = lastAtMost(chosen, number);
            const sample = first[shard]! + subset.all.rows(shard)![number - chosen[shard]!]!;
            return valid[i] === 1 ? sample : null;
          }),
        );
        expect(blocks.map((block) => block.uses)).toEqual(uses);
        expect(batches).toHaveLength(plan.batches);
        return batches;
      });
      const wanted = Array.from({ length }, (_, g) => indices[g % groups]!).slice(begin);
      const there =
        lastBatch === 'drop'
          ? Math.floor(wanted.length / (batchGroups * worldSize)) * batchGroups * worldSize
          : wanted.length;
      const found = perRank[0]!.flatMap((_, b) => {
        const groupsOf = perRank.map((batches) =>
          Array.from({ length: batches[b]!.length / groupSize }, (_, g) =>
            batches[b]!.slice(g * groupSize, (g + 1) * groupSize),
          ),
        );
        return Array.from(
          { length: batchGroups * worldSize },
          (_, g) => groupsOf[g % worldSize]![Math.floor(g / worldSize)],
        );
      });
      expect(found.filter((group) => group !== undefined && group[0] !== null)).toEqual(wanted.slice(0, there));
    }),
  );
});

test('a batch or an epoch that would split a group is rejected, and so are groups of different sizes', () => {
  const options = {
    counts: [4],
    positions: Uint32Array.of(0, 1, 2, 3),
    seed: 0,
    epoch: 0,
    streams: 1,
    blockSamples: 2,
  };
  expect(() => planGroups({ ...options, groupSize: 2, globalBatch: 3 })).toThrow(
    'batchSize is 3, but indices has groups of 2 samples that stay together: set a multiple of 2.',
  );
  expect(() => planGroups({ ...options, groupSize: 2, globalBatch: 2, epochSamples: 7 })).toThrow(
    'samplesPerEpoch is 7',
  );
  expect(() => selectInOrder([[0, 1], [1]], [2])).toThrow('indices[1] has 1 samples, but indices[0] has 2: all groups');
  expect(() =>
    selectInOrder(
      [
        [0, 1],
        [1, 2],
      ],
      [2],
    ),
  ).toThrow('indices[1][1] is 2, which is not the index of a sample');
});

test('another order has another identity, even with the same samples', () => {
  const identity = (order: Indices) => selectInOrder(order, [2, 3]).subset.identity;
  expect(new Set([identity([0, 1]), identity([1, 0]), identity([0, 1, 1]), identity([0, 2])]).size).toBe(4);
  expect(identity([4, 0])).toBe(identity([4, 0]));
  expect(identity([[4, 0]])).not.toBe(identity([4, 0]));
  expect(identity([[4], [0]])).toBe(identity([4, 0]));
});

test('an order is rejected if it is empty or contains an invalid index', () => {
  expect(() => selectInOrder([], [2])).toThrow('indices is empty');
  expect(() => selectInOrder([0, 5], [2, 3])).toThrow(
    'indices[1] is 5, which is not the index of a sample: the dataset has the samples 0 to 4.',
  );
  for (const wrong of [-1, 0.5, Number.NaN])
    expect(() => selectInOrder([wrong], [2])).toThrow(`indices[0] is ${wrong}`);
});
