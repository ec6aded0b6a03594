/** Options of a loader of a mixture as a whole: samples, weights, an order, the length of an epoch. */
import path from 'node:path';
import {
  type Batch,
  type LoaderOptions,
  type LoaderState,
  type MixtureOptions,
  type MixturePart,
  openMixture,
} from '@shardtool/reader';
import { afterAll, expect, test, vi } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';
import { forEach, programOf } from './format-page.js';
import { pythonWith, runPython } from './python.js';

vi.stubEnv('SHARDTOOL_SIDECARS', path.join(emptyFolder(), 'beside'));
afterAll(() => vi.unstubAllEnvs());

const a = await packedSmall({ samples: 60, classes: 2 }, { maxShardSamples: 11 });
const b = await packedSmall({ samples: 34, classes: 3 }, { maxShardSamples: 9, format: 'lmdb' });
const parts: MixturePart[] = [
  { dataset: a, name: 'a' },
  { dataset: b, name: 'b' },
];
const weighed = parts.map((part, i) => ({ ...part, weight: i + 1 }));
const base: LoaderOptions = {
  ...{ transform: [{ name: 'randomResizedCrop', size: 8 }], seed: 2 ** 40 + 7, workers: 1, fields: [], batchSize: 8 },
  ...{ blockSamples: 3, shuffleUnit: 'chunk', lastBatch: 'partial' },
};

interface Seen {
  readonly rows: readonly string[];
  readonly pixels: readonly string[];
  readonly state: LoaderState;
}

/** `dataset:number` of the valid rows, and their pixels. */
async function run(options: LoaderOptions, mixed = parts, settings: MixtureOptions = {}): Promise<Seen[]> {
  await using mixture = await openMixture(mixed, settings);
  await using loader = mixture.loader({ ...base, ...options });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push({ ...rowsOf(batch), state: loader.state() });
  return seen;
}

function rowsOf({ indices, datasetIndex, valid, images }: Batch): Omit<Seen, 'state'> {
  const bytes = images!.length / indices.length;
  const counted = Array.from(indices.keys()).filter((row) => valid[row] === 1);
  return {
    rows: counted.map((row) => `${datasetIndex![row]}:${indices[row]}`),
    pixels: counted.map((row) => Buffer.from(images!.subarray(row * bytes, (row + 1) * bytes)).toString('base64')),
  };
}

const flat = (seen: readonly Seen[]) => seen.flatMap(({ rows }) => rows);
const pixelsOf = (seen: readonly Seen[]) => seen.flatMap(({ pixels }) => pixels);

test.each([{ classes: ['b'] }, { where: 'width >= 9 or class = "a"' }, { classes: ['a', 'b'], where: 'height > 9' }])(
  'selecting with %j on a mixture gives the same samples, order and states as selecting in each dataset',
  async (choice) => {
    for (const mixed of [parts, weighed]) {
      const ofEach = mixed.map((part) => ({ ...part, ...choice }));
      const seen = await run({ ...choice, epochsPerLoop: 2 }, mixed);
      expect(flat(seen).length).toBeGreaterThan(20);
      expect(seen).toEqual(await run({ epochsPerLoop: 2 }, ofEach));
    }
  },
);

test('keys are found in any of the datasets, and a dataset without selected samples takes no turns', async () => {
  await using mixture = await openMixture(parts);
  const keys: string[] = [];
  for await (const { key } of mixture.datasets[1]!.samples()) keys.push(key);
  await using first = mixture.datasets[0]!;
  const own = new Set<string>();
  for await (const { key } of first.samples()) own.add(key);
  const only = keys.filter((key) => !own.has(key)).slice(0, 5);
  if (only.length > 0) expect(new Set(flat(await run({ keys: only })).map((row) => row[0]))).toEqual(new Set(['1']));
  await expect(run({ keys: [keys[0]!, 'nowhere'] })).rejects.toThrow(
    'keys: the dataset has no sample with the key "nowhere": correct it, or remove it from the list.',
  );
  const rows = flat(await run({ classes: ['c'], epochsPerLoop: 2 }));
  expect(new Set(rows.map((row) => row[0]))).toEqual(new Set(['1']));
  expect(rows).toHaveLength(2 * new Set(rows).size);
});

interface MixtureState {
  readonly sources: unknown;
  readonly seed: number;
  readonly group: number;
  readonly window: number;
}

const byClass = { a: 3, b: 1, c: 0.5 };

test.skipIf(pythonWith() === null)(
  'weights of samples draw every pass of each dataset as docs/format.md describes, over epochs that are not whole passes',
  async () => {
    await using mixture = await openMixture(parts);
    const classes: number[][] = [];
    for (const { dataset } of mixture.mixture!.datasets) {
      const of: number[] = [];
      for (const shard of dataset.shards) of.push(...(await shard.loadIndex()).cls);
      classes.push(of);
    }
    const weights = classes.map((of) => of.map((cls) => [3, 1, 0.5][cls]!));
    const counts = mixture.mixture!.datasets.map(({ dataset }) => dataset.shards.map(({ samples }) => samples));
    const inputs: unknown[] = [];
    const delivered: [number, number][][] = [];
    for (const [options, mixed] of [
      [{}, parts],
      [{ samplesPerEpoch: 70 }, weighed],
      [{ shuffleUnit: 'sample' }, parts],
    ] as const) {
      const seen = await run({ weights: byClass, epochsPerLoop: 3, ...options }, mixed);
      for (let epoch = 0; epoch < 3; epoch++) {
        const own = seen.filter(({ state }) => state.epoch === epoch);
        const { sources, seed, group, window } = own[0]!.state as unknown as MixtureState;
        inputs.push([counts, sources, seed, epoch, group, window, weights]);
        delivered.push(flat(own).map((row) => row.split(':').map(Number) as [number, number]));
      }
    }
    const program = programOf(
      'Order of an epoch',
      'Parts of a dataset, other epochs, other orders',
      'Order of a mixture',
    );
    expect(runPython(forEach(program, 'mixture(*x)'), inputs)).toEqual(delivered);
  },
);

test('weights of samples determine the share of a dataset that has no share set', async () => {
  const onlyA = flat(await run({ weights: { a: 1, b: 1, c: 0 }, samplesPerEpoch: 1000 }));
  const shares = [0, 1].map((d) => onlyA.filter((row) => row.startsWith(`${d}:`)).length);
  // 60 of a, and the 34 of b that are not of class c.
  await using mixture = await openMixture(parts);
  const [, second] = mixture.datasets;
  const { cls } = {
    cls: (await Promise.all(second!.shards.map((shard) => shard.loadIndex()))).flatMap((index) => [...index.cls]),
  };
  const ofB = cls.filter((one) => one < 2).length;
  expect(Math.abs(shares[1]! - (1000 * ofB) / (60 + ofB))).toBeLessThanOrEqual(1);
  const half = flat(await run({ weights: { a: 5 }, samplesPerEpoch: 90 }, weighed));
  expect([0, 1].map((d) => half.filter((row) => row.startsWith(`${d}:`)).length)).toEqual([30, 60]);
});

test('a weighted run resumes after any batch, on other ranks and with other workers, with the same pixels', async () => {
  const options = { weights: byClass, samplesPerEpoch: 80, epochsPerLoop: 3 };
  const settings = { group: 4, window: 3 };
  const whole = await run(options, parts, settings);
  // Weights repeat samples, each time with another crop.
  const crops = flat(whole).map((row, i) => `${row} ${pixelsOf(whole)[i]}`);
  expect([new Set(flat(whole)).size < 94, new Set(crops).size]).toEqual([true, 240]);
  expect(await run({ ...options, workers: 3, prefetchBatches: 2 }, parts, settings)).toEqual(whole);
  for (const at of [0, 8, 9, 17]) {
    const state = JSON.parse(JSON.stringify(whole[at]!.state));
    const left = 3 - state.epoch - (state.position === 80 ? 1 : 0);
    const rest = await run({ ...options, state, epochsPerLoop: left }, parts, settings);
    expect(pixelsOf(rest)).toEqual(pixelsOf(whole.slice(at + 1)));
    const ranks = await Promise.all(
      [0, 1].map((rank) =>
        run({ ...options, state, epochsPerLoop: left, rank, worldSize: 2, batchSize: 4 }, parts, settings),
      ),
    );
    expect(ranks.flatMap(pixelsOf).sort()).toEqual(pixelsOf(rest).sort());
  }
});

test('batches of a weighted mixture with buckets have one size each, and a resumed run uses the pending samples', async () => {
  const buckets = {
    transform: [],
    aspectBuckets: [
      [8, 12],
      [12, 8],
    ],
  } as const;
  const options: LoaderOptions = { ...buckets, weights: byClass, samplesPerEpoch: 80, epochsPerLoop: 2, batchSize: 4 };
  const settings = { group: 4, window: 3 };
  const plain = await run({ weights: byClass, samplesPerEpoch: 80, epochsPerLoop: 2 }, parts, settings);
  const whole = await run(options, parts, settings);
  for (const epoch of [0, 1]) {
    const [some, all] = [whole, plain].map((seen) => flat(seen.filter(({ state }) => state.epoch === epoch)));
    expect(some!.sort()).toEqual(all!.sort());
  }
  expect(await run({ ...options, shuffleUnit: 'chunk', holdBytes: 100 }, parts, settings)).toEqual(whole);
  for (const at of [3, 11]) {
    const { state } = whole[at]!;
    const rest = await run({ ...options, state, epochsPerLoop: 2 - state.epoch }, parts, settings);
    expect(pixelsOf(rest)).toEqual(pixelsOf(whole.slice(at + 1)));
  }
});

test('a custom order treats all datasets as one, on any number of ranks, and resumes from a state', async () => {
  const order = Array.from({ length: 94 }, (_, i) => (i * 37 + 5) % 94);
  const rows = order.map((number) => (number < 60 ? `0:${number}` : `1:${number - 60}`));
  const { shuffleUnit: _, ...inOrder } = { ...base, indices: order };
  const runIn = async (options: LoaderOptions) => {
    await using mixture = await openMixture(parts);
    await using loader = mixture.loader({ ...inOrder, ...options });
    const seen: Seen[] = [];
    for await (const batch of loader) seen.push({ ...rowsOf(batch), state: loader.state() });
    return seen;
  };
  const whole = await runIn({});
  expect(flat(whole)).toEqual(rows);
  const { state } = whole[4]!;
  const ranks = await Promise.all([0, 1].map((rank) => runIn({ state, rank, worldSize: 2, batchSize: 4 })));
  ranks.forEach((seen, rank) => {
    expect(flat(seen)).toEqual(rows.slice(40).filter((_row, at) => (at + 40) % 2 === rank));
  });
  // The same crop as in the turns of the mixture: it belongs to seed, epoch and sample.
  const turns = await run({});
  const cropOf = new Map(flat(turns).map((row, i) => [row, pixelsOf(turns)[i]]));
  expect(pixelsOf(whole)).toEqual(rows.map((row) => cropOf.get(row)));
});

test('with samplesPerEpoch an epoch starts where the last one ended, and streams are divided', async () => {
  const rows = flat(await run({ samplesPerEpoch: 47, epochsPerLoop: 4, streams: 6 }));
  expect(rows).toHaveLength(4 * 47);
  for (const [d, size] of [60, 34].entries()) {
    const own = rows.filter((row) => row.startsWith(`${d}:`));
    expect(own.length / rows.length).toBeCloseTo(size / 94, 2);
    for (let from = 0; from + size <= own.length; from += size)
      expect(new Set(own.slice(from, from + size)).size).toBe(size);
  }
  await using mixture = await openMixture(parts);
  const [few, usual] = await Promise.all(
    [{ streams: 6 }, {}].map(async (options) => {
      await using loader = mixture.loader({ ...base, ...options });
      return (await loader.info()).streams;
    }),
  );
  expect(few).toBeLessThan(usual! / 4);
});
