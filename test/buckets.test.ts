import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  addOverlay,
  type Batch,
  type LoaderOptions,
  type LoaderState,
  openDataset,
  openMixture,
  planAspectBuckets,
} from '@shardtool/reader';
import { afterAll, expect, test, vi } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';
import { TIMES } from './repetitions.js';

vi.stubEnv('SHARDTOOL_SIDECARS', path.join(emptyFolder(), 'beside'));
afterAll(() => vi.unstubAllEnvs());

const folder = await packedSmall({ samples: 150, classes: 3 }, { maxShardSamples: 17 });
const SIZES = [
  [24, 12],
  [16, 16],
  [12, 24],
] as const;
const base: LoaderOptions = {
  ...{ seed: 7, workers: 1, fields: [], blockSamples: 4, shuffleUnit: 'chunk', streams: 12 },
  ...{ globalBatchSize: 12, transform: [] },
};

interface Seen {
  readonly numbers: number[];
  readonly valid: number[];
  readonly shape: readonly number[];
  readonly pixels: string;
  readonly crop: number[][];
  readonly state: LoaderState;
}

async function run(options: LoaderOptions, location = folder): Promise<Seen[]> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ ...base, aspectBuckets: SIZES, ...options });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(seenOf(batch, loader.state()));
  return seen;
}

function seenOf(batch: Batch, state: LoaderState): Seen {
  const { originalSize, resizedSize, topLeft } = batch.crop!;
  const crop = Array.from({ length: batch.size }, (_, row) =>
    [originalSize, resizedSize, topLeft].flatMap((pairs) => [pairs[2 * row]!, pairs[2 * row + 1]!]),
  );
  return {
    numbers: Array.from(batch.indices),
    valid: Array.from(batch.valid),
    shape: batch.shape!,
    pixels: Buffer.from(batch.images as Uint8Array).toString('base64'),
    crop,
    state: JSON.parse(JSON.stringify(state)) as LoaderState,
  };
}

/** The samples in the order below, and for each the nearest size. */
async function expectedBatches(rows: number): Promise<{ size: readonly number[]; numbers: number[] }[]> {
  await using dataset = await openDataset(folder);
  const shapes: number[] = [];
  for (let shard = 0; shard < dataset.shards.length; shard++) {
    const { width, height } = await dataset.files.index(shard);
    width.forEach((w, row) => {
      shapes.push(w / height[row]!);
    });
  }
  await using loader = dataset.loader({ ...base, transform: [{ name: 'centerCrop', size: 4 }] });
  const order: number[] = [];
  for await (const { indices: numbers } of loader) order.push(...numbers);
  const nearest = (ratio: number) =>
    SIZES.reduce(
      (best, size) => (distance(ratio, size) < distance(ratio, best) ? size : best),
      SIZES[0] as readonly number[],
    );
  const distance = (ratio: number, [height, width]: readonly number[]) =>
    Math.abs(Math.log(ratio) - Math.log(width! / height!));
  const waiting = new Map<readonly number[], number[]>();
  const batches: { size: readonly number[]; numbers: number[] }[] = [];
  for (const number of order) {
    const size = nearest(shapes[number]!);
    const own = waiting.get(size) ?? [];
    waiting.set(size, own);
    own.push(number);
    if (own.length === rows) batches.push({ size, numbers: own.splice(0) });
  }
  for (const size of [...SIZES]) {
    const own = waiting.get(size) ?? [];
    if (own.length > 0) batches.push({ size, numbers: own });
  }
  return batches;
}

const whole = await run({});

test('every batch has one size, and a batch is delivered when samples of its size fill it', async () => {
  const expected = await expectedBatches(12);
  expect(whole.map(({ numbers, shape }) => ({ size: shape.slice(1, 3), numbers }))).toEqual(expected);
  expect(whole.flatMap(({ numbers }) => numbers).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 150 }, (_, i) => i),
  );
  expect(new Set(whole.map(({ shape }) => shape.slice(1).join())).size).toBe(3);
});

test('the number of workers changes neither rows nor pixels', async () => {
  expect(await run({ workers: 3 })).toEqual(whole);
});

/** For several ranks, the properties of each sample in a batch: the valid rows, by index. */
function together(ranks: readonly Seen[][]): { rows: number[]; shown: string[] }[] {
  return ranks[0]!.map((_, step) => {
    const rows = ranks.flatMap((seen) => {
      const { numbers, valid, pixels, shape, crop } = seen[step]!;
      const bytes = Buffer.from(pixels, 'base64');
      const length = bytes.length / shape[0]!;
      return numbers.flatMap((number, row) => {
        const image = bytes.subarray(row * length, (row + 1) * length).toString('base64');
        return valid[row] === 0 ? [] : [{ number, shown: `${shape.slice(1)} ${crop[row]} ${image}` }];
      });
    });
    rows.sort((a, b) => a.number - b.number);
    return { rows: rows.map(({ number }) => number), shown: rows.map(({ shown }) => shown) };
  });
}

const ranksOf = (worldSize: number, options: LoaderOptions = {}) =>
  Promise.all(Array.from({ length: worldSize }, (_, rank) => run({ rank, worldSize, ...options })));

/** `npm run test:long` tries more of them. */
const IS_LONG = TIMES > 1;

test.each(IS_LONG ? [2, 6] : [3])(
  '%i ranks together have the same batches as one rank, pixel for pixel',
  async (worldSize) => {
    const random = { aspectBuckets: { sizes: SIZES, crop: 'random' }, lastBatch: 'pad' } as const;
    const ranks = await ranksOf(worldSize, random);
    expect(together(ranks)).toEqual(together([await run(random)]));
    for (const seen of ranks) {
      expect(seen.map(({ shape }) => shape)).toEqual(ranks[0]!.map(({ shape }) => shape));
      expect(seen.map(({ state }) => state)).toEqual(ranks[0]!.map(({ state }) => state));
      expect(seen.every(({ shape }) => shape[0] === 12 / worldSize)).toBe(true);
    }
  },
);

test('a run resumes after any batch with other ranks, as if it had not been interrupted', async () => {
  const expected = together([whole]);
  const places = [
    [0, 3],
    [11, 2],
    [4, 1],
    [7, 4],
  ] as const;
  for (const [after, worldSize] of places.slice(0, IS_LONG ? 4 : 2)) {
    const state = whole[after]!.state;
    const seen = await ranksOf(worldSize, { state, lastBatch: 'partial' });
    expect(together(seen)).toEqual(expected.slice(after + 1));
  }
});

test('if a run resumes with another batch size, every remaining sample is used once', async () => {
  for (const globalBatchSize of [4, 30]) {
    const { state } = whole[6]!;
    const rest = await run({ state, globalBatchSize });
    const before = whole.slice(0, 7).flatMap(({ numbers }) => numbers);
    const all = [...before, ...rest.flatMap(({ numbers }) => numbers)].sort((a, b) => a - b);
    expect(all).toEqual(Array.from({ length: 150 }, (_, i) => i));
    const shapeOf = new Map(whole.flatMap(({ numbers, shape }) => numbers.map((number) => [number, shape.slice(1)])));
    for (const { numbers, shape } of rest) for (const n of numbers) expect(shapeOf.get(n)).toEqual(shape.slice(1));
  }
});

test('after the last batch of an epoch the next epoch follows', async () => {
  const two = await run({ epochsPerLoop: 2 });
  const dropped = await run({ epochsPerLoop: 2, lastBatch: 'drop' });
  expect(two.slice(0, whole.length)).toEqual(whole);
  const second = await run({ epoch: 1 });
  expect(await run({ state: whole.at(-1)!.state })).toEqual(second);
  expect(two.slice(whole.length).map(({ numbers }) => numbers)).toEqual(second.map(({ numbers }) => numbers));
  const last = dropped.findLast(({ state }) => state.epoch === 0)!;
  expect((await run({ state: last.state, lastBatch: 'drop' })).map(({ numbers }) => numbers)).toEqual(
    dropped.filter(({ state }) => state.epoch === 1).map(({ numbers }) => numbers),
  );
});

test('holdBytes decides only how much is read again', async () => {
  const again = (options: LoaderOptions) => ranksOf(2, { epochsPerLoop: 2, lastBatch: 'drop', ...options });
  const held = await again({});
  expect(await again({ holdBytes: 0 })).toEqual(held);
  expect(await again({ holdBytes: 3000 })).toEqual(held);
});

test('with all samples in memory, and with other layouts, the batches are the same', async () => {
  const order = { blockSamples: 20, shuffleUnit: 'sample' } as const;
  const streamed = together([await run({ blockSamples: 20, streams: 12, shuffleUnit: 'sample' })]);
  expect(together(await ranksOf(2, { ...order, lastBatch: 'partial' }))).toEqual(streamed);
  for (const format of ['lmdb', 'msgpack'] as const) {
    const other = await packedSmall({ samples: 150, classes: 3 }, { maxShardSamples: 17, format });
    expect((await run({ holdBytes: 4000 }, other)).map(({ pixels }) => pixels)).toEqual(
      whole.map(({ pixels }) => pixels),
    );
  }
});

test('the state is about 300 bytes', () => {
  expect(JSON.stringify(whole[5]!.state).length).toBeLessThan(450);
});

test('an image is resized to cover its size, and the crop states which part is shown', async () => {
  const [portrait] = whole.filter(({ shape }) => shape[1] === 24);
  const { numbers, crop, pixels } = portrait!;
  await using dataset = await openDataset(folder);
  const { index } = dataset.files;
  const shapes: [number, number][] = [];
  for (let shard = 0; shard < dataset.shards.length; shard++) {
    const { width, height } = await index.call(dataset.files, shard);
    width.forEach((w, row) => {
      shapes.push([height[row]!, w]);
    });
  }
  numbers.forEach((number, row) => {
    const [height, width, resizedHeight, resizedWidth, top, left] = crop[row] as [
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    expect([height, width]).toEqual(shapes[number]);
    const isWider = width * 24 >= height * 12;
    expect([resizedHeight, resizedWidth]).toEqual(
      isWider ? [24, Math.floor((width * 24) / height)] : [Math.floor((height * 12) / width), 12],
    );
    expect([top, left].map((at) => Math.abs(at))).toEqual([top, left]);
    expect(top + 24).toBeLessThanOrEqual(resizedHeight);
    expect(left + 12).toBeLessThanOrEqual(resizedWidth);
  });
  // The same steps without buckets give the same pixels.
  await using plain = dataset.loader({ ...base, transform: [{ name: 'cover', size: [24, 12] }] });
  const found = new Map<number, string>();
  for await (const batch of plain) {
    const images = Buffer.from(batch.images as Uint8Array);
    batch.indices.forEach((number, row) => {
      found.set(number, images.subarray(row * 864, (row + 1) * 864).toString('base64'));
    });
  }
  const shown = Buffer.from(pixels, 'base64');
  numbers.forEach((number, row) => {
    expect(shown.subarray(row * 864, (row + 1) * 864).toString('base64')).toBe(found.get(number));
  });
});

test('the counts of sizes are stored, and counted again if the file is damaged', async () => {
  const before = process.env.SHARDTOOL_SIDECARS;
  const sidecars = emptyFolder();
  process.env.SHARDTOOL_SIDECARS = sidecars;
  const files = () =>
    readdirSync(sidecars, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('buckets-'));
  await run({ lastBatch: 'drop' });
  expect(files()).toHaveLength(1);
  const kept = path.join(sidecars, files()[0]!);
  const bytes = readFileSync(kept);
  for (const damaged of [
    bytes.subarray(0, 20),
    bytes.subarray(0, -1),
    bytes.map((byte, i) => (i === bytes.length - 3 ? byte ^ 1 : byte)),
  ]) {
    writeFileSync(kept, damaged);
    expect((await run({})).map(({ numbers }) => numbers)).toEqual(whole.map(({ numbers }) => numbers));
    expect(readFileSync(kept)).toEqual(bytes);
  }
  process.env.SHARDTOOL_SIDECARS = before;
});

test('a rule omits the sizes that are nearest to too few samples, and plan lists them', async () => {
  await using dataset = await openDataset(folder);
  const report = await planAspectBuckets(dataset, {
    aspectBuckets: { area: 1024, step: 8, maxRatio: 4 },
    batchSize: 4,
    worldSize: 2,
  });
  const { sizes, leftOut, waiting, handedOver } = report;
  expect(sizes.reduce((sum, { samples }) => sum + samples, 0)).toBe(150);
  expect(leftOut.length).toBeGreaterThan(0);
  expect(leftOut.every(({ samples }) => samples === 0)).toBe(true);
  for (const { croppedAway, width, height } of sizes) {
    expect(croppedAway).toBeGreaterThanOrEqual(0);
    expect(croppedAway).toBeLessThan(0.4);
    expect(width * height).toBeLessThanOrEqual(1024);
  }
  expect(waiting.most).toBeLessThanOrEqual(sizes.length * 7);
  expect(waiting.mean).toBeLessThanOrEqual(waiting.most);
  expect(handedOver).toBeGreaterThan(0);
  expect(handedOver).toBeLessThan(0.5);
  const seen = await run({ aspectBuckets: { area: 1024, step: 8, maxRatio: 4 }, globalBatchSize: 8, lastBatch: 'pad' });
  expect(seen).toHaveLength(report.batches);
});

test('a bad sample is raised, skipped, or replaced with a sample of the same batch', async () => {
  const [first] = await run({ onBad: 'raise' });
  const steps = (drops: number) => ({ fields: { module: DROPS, options: { number: drops } } });
  const victim = first!.numbers[3]!;
  const [dropped] = await run({ customSteps: steps(victim), onBad: 'raise' });
  expect(dropped!.numbers).toEqual(first!.numbers.map((n, row) => (row === 3 ? first!.numbers[4]! : n)));
  expect(dropped!.shape).toEqual(first!.shape);
});

const DROPS = path.join(emptyFolder(), 'drops.mjs');
writeFileSync(DROPS, 'export default (fields, { number, options }) => (number === options.number ? null : fields);\n');

test.each([
  ['a run over a mixture uses buckets, too', undefined],
  ['samples of a mixture that an overlay excludes are in no bucket', 'without'],
])('%s', async (_name, overlay) => {
  const other = await packedSmall({ samples: 60 }, { maxShardSamples: 20, format: 'lmdb' });
  // Indices are those of the remaining samples.
  const left = Array.from({ length: overlay === undefined ? 60 : 50 }, (_, i) => i);
  if (overlay !== undefined) {
    await using dataset = await openDataset(other);
    const keys: string[] = [];
    for await (const { key } of dataset.samples()) keys.push(key);
    await addOverlay(other, { name: overlay, excludeKeys: keys.filter((_, i) => i % 6 === 5) });
  }
  const mixed = async (rank: number, worldSize: number, state?: LoaderState): Promise<Seen[]> => {
    await using mixture = await openMixture(
      [
        { dataset: folder, name: 'a' },
        { dataset: other, name: 'b', overlay },
      ],
      { group: 6 },
    );
    const { streams: _, ...options } = base;
    const given = { ...options, rank, worldSize, aspectBuckets: SIZES, lastBatch: 'partial' as const };
    await using loader = mixture.loader(state === undefined ? given : { ...given, state });
    const seen: Seen[] = [];
    for await (const batch of loader) {
      const one = seenOf(batch, loader.state());
      seen.push({ ...one, numbers: one.numbers.map((n, row) => n + 1000 * batch.datasetIndex![row]!) });
    }
    if (worldSize === 1) {
      await expect(loader.withWeights(seen[0]!.state, [1, 2])).rejects.toThrow(
        'With aspectBuckets, the weights of a mixture cannot change',
      );
    }
    return seen;
  };
  const alone = await mixed(0, 1);
  const all = alone.flatMap(({ numbers }) => numbers).sort((a, b) => a - b);
  expect(all).toEqual([...Array.from({ length: 150 }, (_, i) => i), ...left.map((i) => 1000 + i)]);
  const rest = await Promise.all([0, 1, 2].map((rank) => mixed(rank, 3, alone[5]!.state)));
  expect(together(rest)).toEqual(together([alone]).slice(6));
});

test('weights and samplesPerEpoch can be combined with buckets', async () => {
  const samplesPerEpoch = 50 * 3 + 100;
  const weighted = (await run({ weights: { a: 3 }, samplesPerEpoch, lastBatch: 'partial' })).flatMap(
    ({ numbers }) => numbers,
  );
  expect(weighted).toHaveLength(samplesPerEpoch);
  const short = await run({ samplesPerEpoch: 40, epochsPerLoop: 4 });
  const counts = new Map<number, number>();
  for (const n of short.flatMap(({ numbers }) => numbers)) counts.set(n, (counts.get(n) ?? 0) + 1);
  expect([...counts.values()].reduce((a, b) => a + b, 0)).toBe(160);
  expect(Math.max(...counts.values())).toBe(2);
});

const refused: readonly (readonly [string, LoaderOptions, RegExp])[] = [
  ['an empty list', { aspectBuckets: [] }, /the list of sizes is empty/],
  ['a size without samples', { aspectBuckets: [...SIZES, [900, 10]] }, /no sample is nearest to 10x900/],
  ['two sizes of one shape', { aspectBuckets: [...SIZES, [32, 32]] }, /16x16 and 32x32 have the same aspect ratio/],
  [
    'a side of zero',
    { aspectBuckets: [[0, 8]] },
    /option aspectBuckets is invalid \(0\.0 must be at least 1, and is 0\); it is \{ area, step, maxRatio, crop \}/,
  ],
  [
    'an area that is not a number',
    { aspectBuckets: { area: Number.NaN } },
    /option aspectBuckets is invalid \(area must be a number, and is NaN\)/,
  ],
  ['a name that it does not have', { aspectBuckets: { area: 1024, ratio: 2 } as never }, /it does not take "ratio"/],
  ['a ratio below one', { aspectBuckets: { area: 1024, maxRatio: 0.5 } }, /maxRatio must be /],
  ['text', { aspectBuckets: '1024' as never }, /The loader's option aspectBuckets is invalid: it is \{ area/],
  ['a transform with a size', { transform: 'train224' }, /The step randomResizedCrop sets the size of images/],
  ['encoded images', { transform: 'raw' }, /aspectBuckets is for batches whose images are decoded and stacked/],
  ['a list of images', { collate: 'list' }, /aspectBuckets is for batches whose images are decoded and stacked/],
];

test.each(refused)('the error for %s is a clear message', async (_what, options, sentence) => {
  await expect(run(options)).rejects.toThrow(sentence);
});

test('a state resumes only with the same buckets', async () => {
  const { state } = whole[3]!;
  await expect(run({ state, aspectBuckets: [SIZES[0], SIZES[2]] })).rejects.toThrow(
    'saved with other sizes of aspectBuckets',
  );
  await using dataset = await openDataset(folder);
  await using plain = dataset.loader({ ...base, collate: 'list', state });
  await expect(plain.info()).rejects.toThrow('saved with aspectBuckets');
  await using plainState = dataset.loader({ ...base, collate: 'list' });
  await plainState.info();
  await expect(run({ state: plainState.state() })).rejects.toThrow('saved without aspectBuckets');
  const { buckets } = state;
  await expect(run({ state: { ...state, buckets: { ...buckets, waiting: [900, 1, 1] } } })).rejects.toThrow(
    'buckets.waiting is larger than the number of samples',
  );
  await expect(run({ state: { ...state, buckets: { ...buckets, waiting: [1] } } })).rejects.toThrow('not a state');
});
