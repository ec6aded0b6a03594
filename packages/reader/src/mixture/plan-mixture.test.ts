/**
 * The rules of mixtures again, as simply as possible and with whole arrays in memory; and tests that the planner follows them
 * for any sizes, any valid number of ranks and any position.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type LastBatch, planEpoch } from '../order/batches.js';
import { word } from '../order/words.js';
import { sourceSeed } from './mixture-order.js';
import { legalMixtureWorldSizes, type MixturePlanOptions, planMixture } from './plan-mixture.js';
import { epochCounts } from './shares.js';

type Mixture = Omit<MixturePlanOptions, 'rank' | 'worldSize' | 'lastBatch' | 'position'>;

/** Every turn has its position on one line; windows of it are shuffled; samples that fill no turn come last. */
function mixtureByTheRules({ sources, samples, base, seed, epoch, group: M, window: Q }: Mixture): string[] {
  const seats = samples.flatMap((count, d) => {
    const turns = Math.floor(count / M);
    return Array.from({ length: turns }, (_, j) => ({ d, place: (2 * j + 1) / turns, over: 2 * j + 1, turns }));
  });
  seats.sort((a, b) => a.over * b.turns - b.over * a.turns || a.d - b.d);
  const line: number[] = [];
  for (let v = 0; v * Q < seats.length; v++) {
    const window = seats.slice(v * Q, (v + 1) * Q).map(({ d }) => d);
    const turns = shuffled(window, seed, epoch, v);
    line.push(...turns.flatMap((d) => Array.from({ length: M }, () => d)));
  }
  const rest = samples.flatMap((count, d) => Array.from({ length: count % M }, () => d));
  line.push(...shuffled(rest, seed, epoch, 0xffffffff));
  const next = samples.map((count, d) => base?.[d] ?? epoch * count);
  const orders = sources.map(() => new Map<number, number[]>());
  return line.map((d) => {
    const { counts } = sources[d]!;
    const size = (counts as number[]).reduce((a, b) => a + b);
    const index = next[d]!++;
    const pass = Math.floor(index / size);
    if (!orders[d]!.has(pass)) orders[d]!.set(pass, passOver({ sources, seed }, d, pass, size));
    return `${d}:${pass}:${orders[d]!.get(pass)![index % size]}`;
  });
}

function shuffled(sources: readonly number[], seed: number, epoch: number, block: number): number[] {
  const list = [...sources].sort((a, b) => a - b);
  for (let i = 0; i < list.length; i++) {
    const j = Number((BigInt(word({ seed, epoch }, 0xfffffffc, block, i)) * BigInt(i + 1)) >> 32n);
    [list[i], list[j]] = [list[j]!, list[i]!];
  }
  return list;
}

function passOver(
  { sources, seed }: Pick<Mixture, 'sources' | 'seed'>,
  d: number,
  epoch: number,
  size: number,
): number[] {
  const plan = planEpoch({ ...sources[d]!, seed: sourceSeed(seed, d), epoch, globalBatch: 1 });
  return Array.from({ length: size }, (_, position) => plan.at(position).number);
}

const decimal = fc.constantFrom(0.7, 0.3, 1, 2, 5, 0.05, 1e-3, 0.693584);
/** A mixture with a few hundred samples per epoch, and a batch size. */
const mixtures = fc
  .record({
    ranks: fc.constantFrom(1, 2, 3, 4, 6),
    groupOfRanks: fc.constantFrom(1, 1, 2, 4),
    batchOfRanks: fc.integer({ min: 1, max: 9 }),
    sources: fc.array(
      fc.record({
        counts: fc
          .array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 30 })), { minLength: 1, maxLength: 7 })
          .filter((counts) => counts.some((count) => count > 0)),
        streamsOfRanks: fc.constantFrom(1, 2, 3),
        blockSamples: fc.constantFrom(1, 2, 5, 16, 60),
        weight: decimal,
        repeat: fc.constantFrom(1, 2, 0.5, 1.37),
        rows: fc.integer({ min: 1, max: 3 }),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    policy: fc.constantFrom('once', 'repeat', 'weights', 'perBatch'),
    end: fc.constantFrom<'first' | 'last'>('first', 'last'),
    seed: fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, 42, 2 ** 40 + 7)),
    epoch: fc.constantFrom(0, 0, 1, 2, 5),
    window: fc.integer({ min: 1, max: 20 }),
    place: fc.double({ min: 0, max: 1, noNaN: true }),
    lastBatch: fc.constantFrom<LastBatch>('pad', 'drop', 'partial'),
  })
  .map(({ ranks, groupOfRanks, batchOfRanks, sources, policy, end, ...rest }) => {
    const group = ranks * groupOfRanks;
    const sizes = sources.map(({ counts }) => counts.reduce((a, b) => a + b));
    const rows = sources.map((source) => source.rows * group);
    const hasBatch = end === 'last' || sizes.every((size, d) => size >= rows[d]!);
    const of = {
      once: {},
      repeat: { repeat: sources.map(({ repeat }) => repeat) },
      weights: { weights: sources.map(({ weight }) => weight), end },
      perBatch: hasBatch ? { perBatch: rows, end } : {},
    }[policy];
    let samples = epochCounts(sizes, of);
    // An epoch of thousands would not test more than one of hundreds.
    if (samples.reduce((a, b) => a + b) > 900) samples = epochCounts(sizes);
    return {
      ...rest,
      sources: sources.map(({ counts, streamsOfRanks, blockSamples }) => ({
        counts,
        streams: ranks * streamsOfRanks,
        blockSamples,
      })),
      samples,
      sizes,
      group,
      globalBatch: ranks * batchOfRanks,
    };
  });

/** The rows of a rank, batch by batch; also checks the guarantees of blocks. */
function rowsOf(options: MixturePlanOptions): { rows: { sample: string; valid: boolean }[][]; positions: number[] } {
  const plan = planMixture(options);
  const blocks = [...plan.blocks()];
  const used = blocks.map(() => 0);
  let live = 0;
  let mostLive = 0;
  let seen = 0;
  const positions: number[] = [];
  const rows = Array.from(plan.rows(), ({ block, item, valid, position }) => {
    positions.push(position);
    return Array.from(block, (ordinal, row) => {
      const { source, pass, samples, from, uses } = blocks[ordinal]!;
      if (used[ordinal] === 0) {
        expect(ordinal).toBe(seen++);
        expect(item[row]).toBe(from);
        mostLive = Math.max(mostLive, ++live);
      }
      if (++used[ordinal]! === uses) live--;
      return { sample: `${source}:${pass}:${samples[item[row]!]}`, valid: valid[row] === 1 };
    });
  });
  expect(used).toEqual(blocks.map(({ uses }) => uses));
  expect(seen).toBe(blocks.length);
  expect(mostLive).toBeLessThanOrEqual(plan.maxLiveBlocks);
  for (const { source, samples, pieces } of blocks) {
    const { counts } = options.sources[source]!;
    const read = pieces.flatMap(({ shard, first, count, number }) => {
      const before = (counts as number[]).slice(0, shard).reduce((a, b) => a + b, 0);
      expect(number).toBe(before + first);
      expect(first + count).toBeLessThanOrEqual(counts[shard]!);
      return Array.from({ length: count }, (_, i) => number + i);
    });
    expect(read.sort((a, b) => a - b)).toEqual([...samples].sort((a, b) => a - b));
  }
  return { rows, positions };
}

test('for every valid number of ranks, each rank has exactly the rows that the rules define, from any position', () => {
  fc.assert(
    fc.property(mixtures, ({ sizes: _sizes, place, lastBatch, ...mixture }) => {
      const epoch = mixtureByTheRules(mixture);
      const position = Math.floor(place * epoch.length);
      const { globalBatch } = mixture;
      for (const worldSize of legalMixtureWorldSizes(mixture)) {
        const batchSize = globalBatch / worldSize;
        for (let rank = 0; rank < worldSize; rank++) {
          const { rows, positions } = rowsOf({ ...mixture, worldSize, rank, lastBatch, position });
          const left = epoch.length - position;
          expect(rows).toHaveLength(
            lastBatch === 'drop' ? Math.floor(left / globalBatch) : Math.ceil(left / globalBatch),
          );
          rows.forEach((batch, b) => {
            const own: { sample: string; valid: boolean }[] = [];
            for (let p = position + b * globalBatch; p < position + (b + 1) * globalBatch; p++) {
              if (p % worldSize === rank) own.push({ sample: epoch[p % epoch.length]!, valid: p < epoch.length });
            }
            const real = own.filter(({ valid }) => valid).length;
            expect(own).toHaveLength(batchSize);
            expect(batch).toEqual(lastBatch === 'partial' ? own.slice(0, Math.max(1, real)) : own);
            expect(positions[b]).toBe(Math.min(epoch.length, position + (b + 1) * globalBatch));
          });
        }
      }
    }),
    { numRuns: 60 },
  );
});

test('any position is computed directly, with the number of samples of each source before it', () => {
  fc.assert(
    fc.property(mixtures, ({ sizes, place, ...mixture }) => {
      const epoch = mixtureByTheRules(mixture);
      const plan = planMixture(mixture);
      const position = Math.floor(place * (epoch.length - 1));
      if (epoch.length > 0) {
        const { source, pass, number } = plan.at(position);
        expect(`${source}:${pass}:${number}`).toBe(epoch[position]);
      }
      const before = epoch.slice(0, position);
      const expected = sizes.map(
        (_, d) => mixture.epoch * mixture.samples[d]! + before.filter((sample) => sample.startsWith(`${d}:`)).length,
      );
      expect(plan.taken(position)).toEqual(expected);
    }),
  );
});

test('each complete pass over a source has every sample once, however epochs divide it', () => {
  fc.assert(
    fc.property(mixtures, ({ sizes, ...mixture }) => {
      const seen = sizes.map(() => new Map<number, number[]>());
      for (let epoch = 0; epoch < 4; epoch++) {
        for (const row of mixtureByTheRules({ ...mixture, epoch })) {
          const [d, pass, number] = row.split(':').map(Number) as [number, number, number];
          seen[d]!.set(pass, [...(seen[d]!.get(pass) ?? []), number]);
        }
      }
      seen.forEach((passes, d) => {
        for (const numbers of passes.values()) expect(new Set(numbers).size).toBe(numbers.length);
        for (let pass = 0; pass < passes.size - 1; pass++) expect(passes.get(pass)).toHaveLength(sizes[d]!);
      });
    }),
    { numRuns: 50 },
  );
});

test('up to any position each source has its share, with a deviation of a few groups', () => {
  fc.assert(
    fc.property(mixtures, ({ sizes, ...mixture }) => {
      const { group: M, window: Q, samples } = mixture;
      const plan = planMixture(mixture);
      const began = plan.taken(0);
      const turns = samples.map((count) => Math.floor(count / M));
      const all = turns.reduce((a, b) => a + b, 0);
      for (let p = 0; p < all * M; p++) {
        plan.taken(p).forEach((count, d) => {
          const share = turns[d]! / all;
          const off = Math.abs(count - began[d]! - p * share) / M;
          const atWindow = 0.5 + (share * sizes.length) / 2;
          expect(off).toBeLessThanOrEqual(
            p % (M * Q) === 0 ? atWindow + 1e-9 : atWindow + Q * Math.max(share, 1 - share) + 1,
          );
        });
      }
    }),
    { numRuns: 30 },
  );
});

test('a mixture of one dataset is that dataset', () => {
  fc.assert(
    fc.property(mixtures, ({ sources: [source], ...mixture }) => {
      const counts = source!.counts as number[];
      const samples = counts.reduce((a, b) => a + b);
      const alone = planMixture({ ...mixture, sources: [source!], samples: [samples] });
      const plan = planEpoch({ ...mixture, ...source! });
      for (let p = 0; p < samples; p++) expect(alone.at(p)).toEqual(plan.at(p));
    }),
    { numRuns: 50 },
  );
});

test('weights may change at any position, and exactly the remaining samples of each source follow', () => {
  fc.assert(
    fc.property(mixtures, ({ sizes, place, ...mixture }) => {
      const before = mixtureByTheRules(mixture);
      const position = Math.floor(place * before.length);
      const base = planMixture(mixture).taken(position);
      const after = mixtureByTheRules({ ...mixture, samples: [...mixture.samples].reverse(), base });
      const passes = sizes.map(() => new Map<string, Set<string>>());
      for (const row of [...before.slice(0, position), ...after]) {
        const [d, pass, number] = row.split(':') as [string, string, string];
        const seen = passes[Number(d)]!.get(pass) ?? new Set();
        expect(seen.has(number)).toBe(false);
        passes[Number(d)]!.set(pass, seen.add(number));
      }
      const changed = planMixture({ ...mixture, samples: [...mixture.samples].reverse(), base });
      after.slice(0, 20).forEach((row, p) => {
        const { source, pass, number } = changed.at(p);
        expect(`${source}:${pass}:${number}`).toBe(row);
      });
    }),
    { numRuns: 50 },
  );
});

test('the error for a number of ranks that cannot share groups, batches and streams lists the possible numbers', () => {
  const options = {
    sources: [{ counts: [100], streams: 12, blockSamples: 4 }],
    samples: [100],
    ...{ seed: 1, epoch: 0, group: 4, window: 2, globalBatch: 24 },
  };
  expect(() => planMixture({ ...options, worldSize: 3 })).toThrow(/3 ranks cannot share .* use 1, 2, 4 ranks/);
});
