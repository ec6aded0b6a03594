/** The rules of buckets once more, as plainly as can be, and that the walk follows them for any order and any ranks. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TIMES } from '../../../../test/repetitions.js';
import type { LastBatch } from '../order/batches.js';
import type { BucketPlace } from '../order/bucket-rows.js';
import { epochOrder, type OrderOptions, sampleAt } from '../order/epoch-order.js';
import { type BucketBatch, batchCount, bucketBatches, dealBatch, lookBack } from './batches.js';

interface Case {
  readonly order: OrderOptions;
  readonly sizes: number;
  /** Of each sample. */
  readonly bucket: readonly number[];
  readonly globalBatch: number;
  readonly lastBatch: LastBatch;
}

/** The samples of an epoch in the order of version 1. */
function samplesOf(order: OrderOptions): number[] {
  const line = epochOrder(order);
  return Array.from({ length: line.samples }, (_, g) => sampleAt(line, g));
}

function walk(one: Case, start?: BucketPlace, globalBatch = one.globalBatch): BucketBatch[] {
  const samples = samplesOf(one.order);
  const bucketsAt = (from: number, to: number) => samples.slice(from, to).map((sample) => one.bucket[sample]!);
  const { sizes, lastBatch } = one;
  const waiting = start && lookBack(start, bucketsAt);
  if (waiting === null) throw new Error('no such place');
  return [...bucketBatches({ samples: samples.length, sizes, bucketsAt, globalBatch, lastBatch, start, waiting })];
}

/** By the rules: each size by itself is cut into batches, and batches come in the order of their last samples. */
function batchesByTheRules({
  order,
  sizes,
  bucket,
  globalBatch: G,
  lastBatch,
}: Case): { bucket: number; rows: number[] }[] {
  const buckets = samplesOf(order).map((sample) => bucket[sample]!);
  const full: { bucket: number; rows: number[] }[] = [];
  const ends: { bucket: number; rows: number[] }[] = [];
  for (let b = 0; b < sizes; b++) {
    const own = buckets.flatMap((one, g) => (one === b ? [g] : []));
    const whole = own.length - (own.length % G);
    for (let i = 0; i < whole; i += G) full.push({ bucket: b, rows: own.slice(i, i + G) });
    const left = own.slice(whole);
    if (left.length === 0 || lastBatch === 'drop') continue;
    const fill = Array.from({ length: G }, (_, i) => left[i % left.length]!);
    ends.push({ bucket: b, rows: lastBatch === 'pad' ? fill : left });
  }
  return [...full.sort((x, y) => x.rows.at(-1)! - y.rows.at(-1)!), ...ends];
}

/** By the rules: everybody keeps their own as long as there is room for it, and what is over goes where there is room. */
function shareByTheRules(positions: readonly number[], worldSize: number): number[] {
  const room = Array.from(
    { length: worldSize },
    (_, r) => Math.floor(positions.length / worldSize) + (r < positions.length % worldSize ? 1 : 0),
  );
  const owner = positions.map((g) => {
    if (room[g % worldSize] === 0) return -1;
    room[g % worldSize]!--;
    return g % worldSize;
  });
  return owner.map((own) => {
    if (own >= 0) return own;
    const rank = room.findIndex((left) => left > 0);
    room[rank]!--;
    return rank;
  });
}

const cases: fc.Arbitrary<Case> = fc
  .record({
    counts: fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 7 }),
    seed: fc.integer({ min: 0, max: 2 ** 53 - 1 }),
    epoch: fc.integer({ min: 0, max: 9 }),
    streams: fc.constantFrom(2, 6, 12),
    blockSamples: fc.constantFrom(1, 3, 8),
    sizes: fc.integer({ min: 1, max: 7 }),
    globalBatch: fc.constantFrom(1, 2, 4, 6, 12, 24),
    lastBatch: fc.constantFrom<LastBatch>('drop', 'pad', 'partial'),
    skew: fc.integer({ min: 1, max: 4 }),
    salt: fc.integer({ min: 0, max: 1000 }),
  })
  .map(({ counts, seed, epoch, streams, blockSamples, sizes, globalBatch, lastBatch, skew, salt }) => {
    const samples = counts.reduce((a, b) => a + b, 0);
    // Some sizes are rare.
    const bucket = Array.from({ length: samples }, (_, i) => {
      const part = (((i + salt) * 2654435761) % 2 ** 32) / 2 ** 32;
      return Math.floor(sizes * part ** skew);
    });
    return { order: { counts, seed, epoch, streams, blockSamples }, sizes, bucket, globalBatch, lastBatch };
  });

const divisors = (n: number) => Array.from({ length: n }, (_, i) => i + 1).filter((w) => n % w === 0);

test('the batches of any order follow the documented rules, and their number equals the computed count', () => {
  fc.assert(
    fc.property(cases, (one) => {
      const batches = walk(one);
      expect(batches.map(({ bucket, positions }) => ({ bucket, rows: [...positions] }))).toEqual(
        batchesByTheRules(one),
      );
      const perSize = new Array<number>(one.sizes).fill(0);
      for (const b of one.bucket) perSize[b]!++;
      expect(batches).toHaveLength(batchCount(perSize, one.globalBatch, one.lastBatch));
    }),
    { numRuns: 80 * TIMES },
  );
});

test('every sample is used once per epoch, and fewer samples are dropped than one batch of each size', () => {
  fc.assert(
    fc.property(cases, (one) => {
      const real = walk(one).flatMap(({ positions, real: count }) => positions.slice(0, count));
      expect(new Set(real).size).toBe(real.length);
      const missing = one.bucket.length - real.length;
      if (one.lastBatch === 'drop') expect(missing).toBeLessThanOrEqual(one.sizes * (one.globalBatch - 1));
      else expect(missing).toBe(0);
    }),
    { numRuns: 40 * TIMES },
  );
});

test('fewer samples than a batch are pending for each size', () => {
  fc.assert(
    fc.property(cases, (one) => {
      for (const { place } of walk(one)) for (const n of place.waiting) expect(n).toBeLessThan(one.globalBatch);
    }),
    { numRuns: 40 * TIMES },
  );
});

test('for every number of ranks, the ranks together have each batch, and each keeps the samples that it reads itself', () => {
  fc.assert(
    fc.property(cases, (one) => {
      for (const batch of walk(one)) {
        const { positions, real } = batch;
        for (const worldSize of divisors(one.globalBatch)) {
          const dealt = dealBatch(batch, worldSize);
          const owners = shareByTheRules(positions, worldSize);
          dealt.forEach(({ rows, real: count }, rank) => {
            const own = owners.flatMap((owner, i) => (owner === rank ? [i] : []));
            if (own.length > 0) expect(rows).toEqual(own);
            else expect([rows, count]).toEqual([[0], 0]);
            if (one.lastBatch !== 'partial') expect(rows).toHaveLength(one.globalBatch / worldSize);
            if (own.length > 0) expect(rows.slice(count).every((i) => i >= real)).toBe(true);
          });
          const counted = dealt.flatMap(({ rows, real: count }) => rows.slice(0, count)).sort((a, b) => a - b);
          expect(counted).toEqual(Array.from({ length: real }, (_, i) => i));
        }
      }
    }),
    { numRuns: 40 * TIMES },
  );
});

test('a run resumes after any batch as if it had not been interrupted', () => {
  fc.assert(
    fc.property(cases, fc.integer({ min: 0, max: 1000 }), (one, at) => {
      const batches = walk(one);
      fc.pre(batches.length > 0);
      const after = at % batches.length;
      const place = JSON.parse(JSON.stringify(batches[after]!.place)) as BucketPlace;
      expect(walk(one, place)).toEqual(batches.slice(after + 1));
    }),
    { numRuns: 80 * TIMES },
  );
});

test('if a run resumes with another batch size, no sample is lost or repeated', () => {
  fc.assert(
    fc.property(cases, fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 1, max: 30 }), (one, at, rows) => {
      const all = { ...one, lastBatch: 'partial' as const };
      const batches = walk(all);
      fc.pre(batches.length > 0);
      const after = at % batches.length;
      const before = batches.slice(0, after + 1).flatMap(({ positions }) => positions);
      const samples = samplesOf(one.order);
      const rest = walk(all, batches[after]!.place, rows);
      for (const { bucket, positions } of rest) {
        expect(positions.length).toBeLessThanOrEqual(rows);
        for (const g of positions) expect(one.bucket[samples[g]!]).toBe(bucket);
      }
      const together = [...before, ...rest.flatMap(({ positions }) => positions)].sort((a, b) => a - b);
      expect(together).toEqual(Array.from(one.bucket, (_, g) => g));
    }),
    { numRuns: 80 * TIMES },
  );
});

test('a position with more pending samples than were read is detected', () => {
  expect(lookBack({ step: 1, position: 5, waiting: [2, 4] }, (from, to) => new Uint8Array(to - from))).toBeNull();
});

test('a search for pending samples goes far back if a size is rare', () => {
  const bucketsAt = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => (from + i === 3 ? 1 : 0));
  expect(lookBack({ step: 9, position: 200_000, waiting: [2, 1] }, bucketsAt)).toEqual([[199_998, 199_999], [3]]);
});

const PINNED: Case = {
  order: { counts: [5, 0, 3, 7, 1], seed: 1, epoch: 0, streams: 2, blockSamples: 4 },
  sizes: 3,
  bucket: Array.from({ length: 16 }, (_, sample) => sample % 3),
  globalBatch: 4,
  lastBatch: 'pad',
};

test('the order of seed 1 with buckets is the same as ever', () => {
  const samples = samplesOf(PINNED.order);
  const shown = walk(PINNED).map(({ bucket, positions, real, place }) => {
    const rows = positions.map((g, i) => `${i < real ? '' : '+'}${samples[g]}`).join(' ');
    return `${bucket}: ${rows} (${place.position}; ${place.waiting.join(' ')})`;
  });
  expect(shown).toEqual([
    '0: 0 3 9 12 (10; 0 3 3)',
    '1: 10 1 13 4 (11; 0 0 3)',
    '2: 11 2 5 14 (12; 0 0 0)',
    '0: 15 6 +15 +6 (16; 0 1 1)',
    '1: 7 +7 +7 +7 (16; 0 0 1)',
    '2: 8 +8 +8 +8 (16; 0 0 0)',
  ]);
  const dealt = walk(PINNED).map((batch) =>
    dealBatch(batch, 2).map(({ rows }) => rows.map((i) => samples[batch.positions[i]!])),
  );
  expect(dealt.slice(0, 4)).toEqual([
    [
      [0, 3],
      [9, 12],
    ],
    [
      [1, 4],
      [10, 13],
    ],
    [
      [2, 14],
      [11, 5],
    ],
    [
      [15, 15],
      [6, 6],
    ],
  ]);
});

test('over many seeds, a sample is equally likely at each position among the batches of its size', () => {
  const places = 20;
  const found = new Array<number>(places).fill(0);
  const seeds = 4000;
  const bucket = Array.from({ length: 60 }, (_, sample) => sample % 3);
  for (let seed = 0; seed < seeds; seed++) {
    const order = { counts: [25, 35], seed, epoch: 0, streams: 4, blockSamples: 15 };
    const rows = walk({ order, sizes: 3, bucket, globalBatch: 5, lastBatch: 'drop' }).flatMap((batch) =>
      batch.bucket === 1 ? [...batch.positions] : [],
    );
    const samples = samplesOf(order);
    found[rows.findIndex((g) => samples[g] === 1)]!++;
  }
  const expected = seeds / places;
  const chiSquare = found.reduce((sum, n) => sum + (n - expected) ** 2 / expected, 0);
  // 99.9 % of all such sums with 19 degrees of freedom are less.
  expect(chiSquare).toBeLessThan(43.8);
});
