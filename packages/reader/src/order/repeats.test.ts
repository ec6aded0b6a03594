import { describe, expect, test } from 'vitest';
import { randomOf } from '../../../../test/random.js';
import { type EpochPlan, legalWorldSizes, type PlanOptions, planEpoch } from './batches.js';

/** The samples and repetitions that a plan delivers through its blocks, and its reads. */
function delivered(plan: EpochPlan): { rows: [number, number][]; valid: number[]; read: number[]; live: number } {
  const blocks = plan.blocks();
  const live = new Map<number, { samples: ArrayLike<number>; of: Uint32Array; left: number }>();
  const [rows, valid, read]: [[number, number][], number[], number[]] = [[], [], []];
  let most = 0;
  for (const batch of plan.rows()) {
    batch.block.forEach((ordinal, row) => {
      if (!live.has(ordinal)) {
        const block = blocks.next().value!;
        expect(block.ordinal).toBe(ordinal);
        const pieces = block.pieces.flatMap(({ number, count }) =>
          Array.from({ length: count }, (_, at) => number + at),
        );
        expect(pieces.toSorted((a, b) => a - b)).toEqual([...new Set(block.samples)].toSorted((a, b) => a - b));
        read.push(...pieces);
        live.set(ordinal, { samples: block.samples, of: block.repeats!.of, left: block.uses });
        most = Math.max(most, live.size);
      }
      const block = live.get(ordinal)!;
      const item = batch.item[row]!;
      rows.push([block.samples[item]!, block.of[item]!]);
      valid.push(batch.valid[row]!);
      if (--block.left === 0) live.delete(ordinal);
    });
  }
  expect([live.size, blocks.next().done]).toEqual([0, true]);
  return { rows, valid, read, live: most };
}

/** The positions of all ranks, in the order of the epoch. */
function interleaved(options: PlanOptions, worldSize: number): [number, number][] {
  const ranks = Array.from({ length: worldSize }, (_, rank) => delivered(planEpoch({ ...options, rank, worldSize })));
  const global: [number, number][] = [];
  for (let row = 0; row < ranks[0]!.rows.length; row++) {
    for (const { rows, valid } of ranks) if (valid[row] === 1) global.push(rows[row]!);
  }
  return global;
}

/** The order without repetitions: pass after pass, by its definition. */
function passes(options: PlanOptions, count: number): number[] {
  return Array.from({ length: count }, (_, pass) => {
    const plan = planEpoch({ ...options, repeats: 1, epochSamples: undefined, epoch: pass, position: 0 });
    return Array.from({ length: plan.samples }, (_, at) => plan.at(at).number);
  }).flat();
}

describe('a loader with repeats', () => {
  const random = randomOf('repeated samples');
  const below = (end: number) => Math.floor(random() * end);
  const cases = Array.from({ length: 16 }, () => {
    const counts = Array.from({ length: 1 + below(5) }, () => below(30));
    counts[0] = 1 + counts[0]!;
    const streams = [1, 2, 4, 6, 12][below(5)]!;
    const globalBatch = streams * (1 + below(3));
    const total = counts.reduce((a, b) => a + b);
    const repeats = 2 + below(4);
    const epochSamples = below(2) === 0 ? undefined : 1 + below(2 * total * repeats);
    const [seed, epoch, blockSamples] = [below(1000), below(4), 1 + below(9)];
    return { counts, streams, globalBatch, repeats, epochSamples, seed, epoch, blockSamples };
  });

  test('delivers each sample of the order several times in a row, with any number of ranks and after any batch', () => {
    for (const options of cases) {
      const { repeats, epochSamples, epoch, counts, globalBatch, streams } = options;
      const pass = counts.reduce((a, b) => a + b) * repeats;
      const length = epochSamples ?? pass;
      const start = epoch * length;
      const endless = passes(options, Math.ceil((start + length) / pass));
      const expected = Array.from({ length }, (_, at): [number, number] => [
        endless[Math.floor((start + at) / repeats)]!,
        ((start + at) % pass) % repeats,
      ]);
      for (const worldSize of legalWorldSizes(streams, globalBatch)) {
        expect(interleaved(options, worldSize), JSON.stringify({ ...options, worldSize })).toEqual(expected);
        const batches = Math.floor(length / globalBatch);
        for (const batch of new Set([1, Math.floor(batches / 2), batches].filter((n) => n >= 1 && n <= batches))) {
          const position = batch * globalBatch;
          if (position === length) continue;
          expect(interleaved({ ...options, position }, worldSize)).toEqual(expected.slice(position));
        }
      }
      const plan = planEpoch(options);
      expect(expected.map((_, at) => plan.at(at).number)).toEqual(expected.map(([number]) => number));
    }
  });

  test('reads a repeated sample once, and only on the rank that delivers it', () => {
    const options = { counts: [40, 25], streams: 8, globalBatch: 16, repeats: 3, seed: 5, epoch: 0, blockSamples: 4 };
    const reads = Array.from({ length: 8 }, (_, rank) => {
      const { rows, read, live } = delivered(planEpoch({ ...options, rank, worldSize: 8, lastBatch: 'drop' }));
      expect(new Set(read)).toEqual(new Set(rows.map(([number]) => number)));
      expect(read.length).toBe(new Set(read).size);
      expect(live).toBeLessThanOrEqual(planEpoch({ ...options, rank, worldSize: 8 }).maxLiveBlocks);
      return read.length;
    });
    expect(reads.reduce((a, b) => a + b)).toBe(Math.floor((65 * 3) / 16) * 16);
  });
});
