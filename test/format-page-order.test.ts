import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type LoaderOptions, openDataset, openMixture } from '@shardtool/reader';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planMixture } from '#reader/mixture/plan-mixture';
import { planEpoch } from '#reader/order/batches';
import { packedSmall } from './datasets.js';
import { earlier, forEach, programOf } from './format-page.js';
import { pythonWith, runPython } from './python.js';
import { TIMES } from './repetitions.js';

const ORDER = programOf('Order of an epoch', 'Parts of a dataset, other epochs, other orders', 'Order of a mixture');

interface Run {
  readonly dataset: string;
  readonly options: { readonly worldSize?: number };
  /** As in version 1. */
  readonly state: {
    readonly seed: number;
    readonly epoch: number;
    readonly streams: number;
    readonly blockSamples: number;
    readonly unit: string;
    readonly shuffle: boolean;
    readonly selection: string;
    readonly epochSamples: number | null;
    readonly position: number;
  };
  readonly rest: readonly string[];
}
const runs: Run[] = JSON.parse(readFileSync(path.join(earlier, 'states.json'), 'utf8')).filter(
  ({ dataset, state, options }: Run) =>
    dataset !== 'foreign' &&
    state.shuffle &&
    state.selection === '' &&
    state.epochSamples === null &&
    options.worldSize === undefined,
);

test.skipIf(pythonWith() === null)('loaders resume in the order of docs/format.md, epoch by epoch', async () => {
  expect(new Set(runs.map(({ state }) => state.unit))).toEqual(new Set(['sample', 'shard', 'chunk']));
  for (const { dataset: name, state, rest } of runs) {
    await using dataset = await openDataset(path.join(earlier, name));
    const counts = dataset.shards.map(({ samples }) => samples);
    const keys: string[] = [];
    for await (const { key } of dataset.samples()) keys.push(key);
    const rows = rest.map((row) => row.split(' '));
    for (const epoch of new Set(rows.map(([of]) => Number(of)))) {
      const input = [counts, state.seed, epoch, state.streams, state.blockSamples, state.unit];
      const [numbers] = runPython<number[][]>(forEach(ORDER, 'order(*x)'), [input]);
      const order = numbers!.map((number) => keys[number]);
      const there = rows.filter(([of]) => Number(of) === epoch).map(([, key]) => key);
      expect(order.slice(epoch === state.epoch ? state.position : 0), `${name}, epoch ${epoch}`).toEqual(there);
    }
  }
});

interface MixtureState {
  readonly seed: number;
  readonly epoch: number;
  readonly group: number;
  readonly window: number;
  readonly sources: readonly { readonly base: number | null }[];
}

test.skipIf(pythonWith() === null)(
  'mixtures have the order of docs/format.md, over epochs, and after a change of weights',
  async () => {
    const places = ['tar', 'lmdb', 'msgpack'].map((name) => path.join(earlier, name));
    await using mixture = await openMixture(
      places.map((dataset, i) => ({ dataset, name: String(i), weight: [0.5, 0.3, 0.2][i] })),
      { end: 'last', group: 7, window: 3 },
    );
    const options = { transform: 'raw', batchSize: 6, seed: 2 ** 40 + 3, workers: 1, lastBatch: 'partial' } as const;
    const counts = mixture.mixture!.datasets.map(({ dataset }) => dataset.shards.map(({ samples }) => samples));
    await using first = mixture.loader(options);
    await first.info();
    const weighed = await first.withWeights(first.state(), [1, 1, 4]);
    for (const state of [undefined, weighed]) {
      await using loader = mixture.loader({ ...options, ...(state && { state }) });
      for (let epoch = 0; epoch < 3; epoch++) {
        const seen: [number, number][] = [];
        let now: MixtureState | undefined;
        for await (const { datasetIndex: source, indices: numbers } of loader) {
          for (const [row, number] of numbers.entries()) seen.push([source![row]!, number]);
          now = loader.state() as unknown as MixtureState;
        }
        const { sources, seed, group, window } = now!;
        expect(now!.epoch).toBe(epoch);
        expect(sources.map(({ base }) => base === null)).toEqual(sources.map(() => state === undefined));
        const input = [counts, sources, seed, epoch, group, window];
        expect([seen]).toEqual(runPython(forEach(ORDER, 'mixture(*x)'), [input]));
      }
    }
  },
);

const anySeed = fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, 42, 2 ** 40 + 7));
const anyUnit = fc.constantFrom('sample' as const, 'shard' as const, 'chunk' as const, undefined);
/** Sizes of shards, some of which are empty. */
const anyCounts = fc
  .array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 30 })), { minLength: 1, maxLength: 12 })
  .filter((counts) => counts.some((count) => count > 0));

test.skipIf(pythonWith() === null)(
  'the programs in docs/format.md compute the order of any epoch, with shards without samples',
  () => {
    const orders = fc.record({
      counts: anyCounts,
      seed: anySeed,
      epoch: fc.constantFrom(0, 1, 7, 2 ** 31 + 5),
      streams: fc.integer({ min: 1, max: 6 }),
      blockSamples: fc.integer({ min: 1, max: 9 }),
      unit: anyUnit,
      shuffle: fc.boolean(),
      epochSamples: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
    });
    // For short epochs far ahead, the pass would be beyond 2^32.
    const cases = fc
      .sample(orders, 300 * TIMES)
      .map((one) => (one.epochSamples ? { ...one, epoch: one.epoch % 100 } : one));
    expect(cases.some(({ counts, unit }) => unit === 'shard' && counts.includes(0))).toBe(true);
    const planned = cases.map((one) => {
      const plan = planEpoch({ ...one, globalBatch: 1 });
      return { unit: plan.unit, order: Array.from({ length: plan.samples }, (_, p) => plan.at(p).number) };
    });
    const program = `${ORDER}
shuffle_values = shuffle
def planned(case):
    global shuffle
    shuffle = shuffle_values if case["shuffle"] else lambda *_: None
    counts, streams, block = case["counts"], case["streams"], case["blockSamples"]
    unit = case.get("unit") or default_unit(counts, streams, block)
    def one_pass(k):
        return order(counts, case["seed"], k, streams, block, unit)
    epoch, wanted = case["epoch"], case.get("epochSamples")
    return {"unit": unit, "order": stretch(one_pass, sum(counts), epoch, wanted) if wanted else one_pass(epoch)}`;
    expect(runPython(forEach(program, 'planned(x)'), cases)).toEqual(planned);
  },
);

test.skipIf(pythonWith() === null)(
  'the programs in docs/format.md compute the samples that loaders deliver: selected, weighted, in epochs of any length, in a custom order',
  async () => {
    const samples = 40;
    await using dataset = await openDataset(await packedSmall({ samples, classes: 2 }, { maxShardSamples: 6 }));
    const keys: string[] = [];
    for await (const { key } of dataset.samples()) keys.push(key);
    const shards = dataset.shards.map((shard) => shard.samples);
    const anyNumber = fc.integer({ min: 0, max: samples - 1 });
    const runs = fc.record({
      seed: anySeed,
      epoch: fc.integer({ min: 0, max: 9 }),
      streams: fc.integer({ min: 1, max: 5 }),
      blockSamples: fc.integer({ min: 1, max: 7 }),
      shuffleUnit: anyUnit,
      selected: fc.option(fc.uniqueArray(anyNumber, { minLength: 2, maxLength: 14 }), { nil: undefined }),
      weights: fc.option(
        fc.array(fc.constantFrom(0, 0.25, 1, 1 / 3, 1.5, 2, 1000), { minLength: samples, maxLength: samples }),
        {
          nil: undefined,
        },
      ),
      indices: fc.option(fc.array(anyNumber, { minLength: 1, maxLength: 50 }), { nil: undefined }),
      epochSamples: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
    });
    const cases: object[] = [];
    const delivered: number[][] = [];
    for (const run of fc.sample(runs, 40 * TIMES)) {
      const { selected, weights, indices, epochSamples, ...others } = run;
      const kind = indices !== undefined ? { indices } : { keys: selected?.map((number) => keys[number]!), weights };
      const { shuffleUnit, ...withoutUnit } = others;
      const options: LoaderOptions = {
        ...(indices === undefined ? others : withoutUnit),
        ...kind,
        samplesPerEpoch: epochSamples,
        ...{ transform: 'raw', batchSize: 7, workers: 1, lastBatch: 'partial', fields: [] },
      };
      await using loader = dataset.loader(options);
      const found: number[] = [];
      try {
        for await (const { indices: numbers } of loader) found.push(...numbers);
      } catch (error) {
        // Weights that select nothing.
        expect((error as Error).message).toMatch(/No sample is selected/);
        continue;
      }
      delivered.push(found);
      const { unit, streams, blockSamples } = loader.state() as Run['state'];
      cases.push({ ...options, shards, selected, unit, streams, blockSamples });
    }
    expect(delivered.length).toBeGreaterThan(30);
    const program = `${ORDER}
def delivered(case):
    shards, selected = case["shards"], case.get("selected")
    custom = case.get("indices")
    chosen = set(range(sum(shards)) if selected is None else selected)
    given = case.get("weights") or [1] * sum(shards)
    weights = [w if n in chosen else None for n, w in enumerate(given)]
    most = sum(1 for w in weights if w)
    wanted = case.get("samplesPerEpoch")
    samples = wanted if wanted and case.get("weights") else most
    def one_pass(k):
        if custom is not None:
            return custom
        return weighted(shards, weights, samples, case["seed"], k, case["streams"], case["blockSamples"], case["unit"])
    return stretch(one_pass, len(one_pass(0)), case["epoch"], wanted) if wanted else one_pass(case["epoch"])`;
    expect(runPython(forEach(program, 'delivered(x)'), cases)).toEqual(delivered);
  },
);

test.skipIf(pythonWith() === null)(
  'the program for mixtures in docs/format.md computes the order for any datasets, with shards without samples',
  () => {
    const mixtures = fc.record({
      sources: fc.array(
        fc.record({
          counts: anyCounts,
          streams: fc.constantFrom(2, 4, 6),
          blockSamples: fc.integer({ min: 1, max: 7 }),
          unit: anyUnit.map((unit) => unit ?? 'shard'),
          samples: fc.integer({ min: 0, max: 40 }),
          base: fc.option(fc.integer({ min: 0, max: 90 }), { nil: null }),
        }),
        { minLength: 1, maxLength: 4 },
      ),
      seed: anySeed,
      epoch: fc.integer({ min: 0, max: 5 }),
      group: fc.constantFrom(1, 2),
      window: fc.integer({ min: 1, max: 6 }),
    });
    const cases = fc.sample(mixtures, 100 * TIMES).map(({ sources, ...rest }) => ({
      ...rest,
      // A state contains the positions of all datasets, or of none.
      sources: sources.map((source) => ({ ...source, base: sources[0]!.base === null ? null : (source.base ?? 0) })),
    }));
    const planned = cases.map(({ sources, ...rest }) => {
      const plan = planMixture({
        ...rest,
        sources,
        samples: sources.map(({ samples }) => samples),
        ...(sources[0]!.base !== null && { base: sources.map(({ base }) => base!) }),
        globalBatch: 2,
      });
      return Array.from({ length: plan.samples }, (_, p) => {
        const { source, number } = plan.at(p);
        return [source, number];
      });
    });
    const call =
      'mixture([s["counts"] for s in x["sources"]], x["sources"], x["seed"], x["epoch"], x["group"], x["window"])';
    expect(runPython(forEach(ORDER, call), cases)).toEqual(planned);
  },
);
