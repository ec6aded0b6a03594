/**
 * The rules of the order again, as simply as possible and with whole arrays in memory; and tests that the planner follows
 * them for any sizes, any number of ranks and any position.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TIMES } from '../../../../test/repetitions.js';
import { type EpochPlan, type LastBatch, legalWorldSizes, type PlannedBlock, planEpoch } from './batches.js';
import type { OrderOptions } from './epoch-order.js';
import { unitOf } from './units.js';
import { UNITS_STREAM, word } from './words.js';

interface Order extends OrderOptions {
  readonly counts: readonly number[];
  readonly shuffle: boolean;
}

/** Units in shuffled order make a line; it is cut into streams, and those into blocks; streams take turns. */
function orderByTheRules(order: Order): number[] {
  const { streams: S, blockSamples: B } = order;
  const line = shuffledByTheRules(order, unitsByTheRules(order), UNITS_STREAM, 0).flat();
  const streams: number[][] = [];
  for (let s = 0, start = 0; s < S; s++) {
    const length = Math.floor(line.length / S) + (s < line.length % S ? 1 : 0);
    const stream: number[] = [];
    const firstLength = B - Math.floor((s * B) / S);
    for (let from = 0, block = 0; from < length; block++) {
      const to = Math.min(length, block === 0 ? firstLength : from + B);
      stream.push(...shuffledByTheRules(order, line.slice(start + from, start + to), s, block));
      from = to;
    }
    streams.push(stream);
    start += length;
  }
  return Array.from(line, (_, position) => streams[position % S]![Math.floor(position / S)]!);
}

function unitsByTheRules({ counts, streams, blockSamples, unit }: Order): number[][] {
  const kind = unit ?? unitOf(counts, streams, blockSamples);
  let first = 0;
  return counts.flatMap((count) => {
    const shard = Array.from({ length: count }, (_, i) => first + i);
    first += count;
    if (kind === 'shard') return [shard];
    const size = kind === 'sample' ? 1 : blockSamples;
    return Array.from({ length: Math.ceil(count / size) }, (_, c) => shard.slice(c * size, (c + 1) * size));
  });
}

function shuffledByTheRules<T>(order: Order, values: T[], stream: number, block: number): T[] {
  if (!order.shuffle) return values;
  for (let i = 0; i < values.length; i++) {
    const j = Number((BigInt(word(order, stream, block, i)) * BigInt(i + 1)) >> 32n);
    [values[i], values[j]] = [values[j]!, values[i]!];
  }
  return values;
}

/** Any order with samples, and a batch size that some numbers of ranks can share. */
const orders = fc.record({
  counts: fc
    .array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 40 })), { minLength: 1, maxLength: 14 })
    .filter((counts) => counts.some((count) => count > 0)),
  seed: fc.maxSafeNat(),
  epoch: fc.integer({ min: 0, max: 2 ** 32 - 2 }),
  streams: fc.constantFrom(1, 2, 3, 4, 6, 7, 12, 24),
  blockSamples: fc.integer({ min: 1, max: 12 }),
  unit: fc.constantFrom(undefined, 'sample', 'shard', 'chunk') satisfies fc.Arbitrary<Order['unit']>,
  shuffle: fc.boolean(),
});
const batches = fc.record({
  globalBatch: fc.constantFrom(1, 2, 5, 6, 12, 24, 48, 60),
  lastBatch: fc.constantFrom<LastBatch>('pad', 'drop', 'partial'),
});

interface Row {
  readonly number: number;
  readonly valid: boolean;
}

/** The rows of one rank, batch by batch. Also checks the guarantees of {@link PlannedBlock}. */
function rowsOf(plan: EpochPlan, counts: readonly number[]): Row[][] {
  const blocks = [...plan.blocks()];
  const used = blocks.map(() => 0);
  const firstNeeded: { ordinal: number; from: number }[] = [];
  let live = 0;
  let mostLive = 0;
  const rows = Array.from(plan.rows(), ({ block, item, valid }) =>
    Array.from(block, (ordinal, row) => {
      if (used[ordinal] === 0) {
        firstNeeded.push({ ordinal, from: item[row]! });
        mostLive = Math.max(mostLive, ++live);
      }
      if (++used[ordinal]! === blocks[ordinal]!.uses) live--;
      return { number: blocks[ordinal]!.samples[item[row]!]!, valid: valid[row] === 1 };
    }),
  );
  expect(firstNeeded).toEqual(blocks.map(({ from }, ordinal) => ({ ordinal, from })));
  expect(used).toEqual(blocks.map(({ uses }) => uses));
  expect(mostLive).toBeLessThan(plan.maxLiveBlocks);
  expect(blocks.filter((block) => !isReadByItsPieces(block, counts))).toEqual([]);
  return rows;
}

function isReadByItsPieces({ samples, pieces }: PlannedBlock, counts: readonly number[]): boolean {
  const read: number[] = [];
  for (const { shard, first, count, number } of pieces) {
    const before = counts.slice(0, shard).reduce((sum, samplesOf) => sum + samplesOf, 0);
    if (number !== before + first || count < 1 || first + count > counts[shard]!) return false;
    for (let i = 0; i < count; i++) read.push(number + i);
  }
  const rising = (numbers: Iterable<number>) => [...numbers].sort((a, b) => a - b).join();
  return rising(read) === rising(samples);
}

/** For every valid number of ranks, each rank has exactly the rows that the rules define. */
function checkAllRanks(
  options: Order & { globalBatch: number; lastBatch: LastBatch; position: number; epochSamples?: number },
  epochOrder: readonly number[],
): void {
  const { globalBatch, lastBatch, position } = options;
  const samples = epochOrder.length;
  const left = samples - position;
  const count = lastBatch === 'drop' ? Math.floor(left / globalBatch) : Math.ceil(left / globalBatch);
  for (const worldSize of legalWorldSizes(options.streams, globalBatch)) {
    for (let rank = 0; rank < worldSize; rank++) {
      const expected = Array.from({ length: count }, (_, b) => {
        const from = position + b * globalBatch;
        const own = Array.from({ length: globalBatch }, (_, i) => from + i).filter((g) => g % worldSize === rank);
        const there = own.filter((g) => g < samples);
        const positions = lastBatch === 'partial' ? (there.length > 0 ? there : own.slice(0, 1)) : own;
        return positions.map((g) => ({ number: epochOrder[g % samples]!, valid: g < samples }));
      });
      const plan = planEpoch({ ...options, rank, worldSize });
      expect(plan.batches).toBe(count);
      expect(rowsOf(plan, options.counts)).toEqual(expected);
    }
  }
}

test('every sample is used exactly once, at the position that the rules define', () => {
  fc.assert(
    fc.property(orders, (order) => {
      const expected = orderByTheRules(order);
      const plan = planEpoch({ ...order, globalBatch: 1 });
      expect(Array.from({ length: plan.samples }, (_, position) => plan.at(position).number)).toEqual(expected);
      expect(
        rowsOf(plan, order.counts)
          .flat()
          .map(({ number }) => number),
      ).toEqual(expected);
      expect([...expected].sort((a, b) => a - b)).toEqual(expected.map((_, number) => number));
    }),
    { numRuns: 40 * TIMES },
  );
});

test('for every valid number of ranks, from any position, the global batches follow the rules', () => {
  const position = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(orders, batches, position, (order, sizes, share) => {
      const expected = orderByTheRules(order);
      checkAllRanks({ ...order, ...sizes, position: Math.round(share * expected.length) }, expected);
    }),
    { numRuns: 60 * TIMES },
  );
});

test('a run that is stopped and resumed with other ranks and another batch size delivers the same samples as an uninterrupted run', () => {
  const stops = fc.array(fc.record({ batches: fc.nat(5), globalBatch: fc.constantFrom(1, 2, 6, 12, 24) }), {
    maxLength: 6,
  });
  fc.assert(
    fc.property(orders, stops, fc.nat(), (order, parts, pick) => {
      const delivered: number[] = [];
      let position = 0;
      for (const part of [...parts, { batches: Number.POSITIVE_INFINITY, globalBatch: 12 }]) {
        const legal = legalWorldSizes(order.streams, part.globalBatch);
        const worldSize = legal[pick % legal.length]!;
        const states: number[] = [];
        const ranks = Array.from({ length: worldSize }, (_, rank) => {
          const plan = planEpoch({ ...order, ...part, rank, worldSize, position, lastBatch: 'pad' });
          states.push(
            Array.from(plan.rows(), (batch) => batch.position)[Math.min(part.batches, plan.batches) - 1] ?? position,
          );
          return rowsOf(plan, order.counts).slice(0, part.batches).flat();
        });
        expect(new Set(states).size, 'the state is the same on all ranks').toBe(1);
        for (let g = position; g < states[0]!; g++) {
          const row = ranks[g % worldSize]![Math.floor((g - position) / worldSize)]!;
          delivered.push(row.valid ? row.number : -1);
        }
        position = states[0]!;
      }
      expect(delivered).toEqual(orderByTheRules(order));
    }),
    { numRuns: 60 * TIMES },
  );
});

test('consecutive epochs of any length are the consecutive passes', () => {
  const shapes = fc.record({ epochSamples: fc.integer({ min: 1, max: 300 }), epoch: fc.nat(4) });
  fc.assert(
    fc.property(orders, batches, shapes, (order, sizes, shape) => {
      const start = shape.epoch * shape.epochSamples;
      const passes: number[] = [];
      for (let pass = 0; passes.length < start + shape.epochSamples; pass++) {
        passes.push(...orderByTheRules({ ...order, epoch: pass }));
      }
      const expected = passes.slice(start, start + shape.epochSamples);
      checkAllRanks({ ...order, ...sizes, ...shape, position: Math.floor(shape.epochSamples / 3) }, expected);
    }),
    { numRuns: 40 * TIMES },
  );
});
