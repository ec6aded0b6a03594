import path from 'node:path';
import { type Batch, type LoaderOptions, type LoaderState, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';

process.env.SHARDTOOL_BESIDE = path.join(emptyFolder(), 'beside');

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
  await using loader = dataset.loader({ ...base, buckets: SIZES, ...options });
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
    numbers: Array.from(batch.numbers),
    valid: Array.from(batch.valid),
    shape: batch.shape!,
    pixels: Buffer.from(batch.images as Uint8Array).toString('base64'),
    crop,
    state: JSON.parse(JSON.stringify(state)) as LoaderState,
  };
}

/** What the order below gives, sample after sample, and the size that is nearest to each of its samples. */
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
  for await (const { numbers } of loader) order.push(...numbers);
  const nearest = (ratio: number) =>
    SIZES.reduce((best, size) => (far(ratio, size) < far(ratio, best) ? size : best), SIZES[0] as readonly number[]);
  const far = (ratio: number, [height, width]: readonly number[]) =>
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

test('every batch is of one size, and batches come as samples of a size fill them up', async () => {
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

/** Of several ranks, what a batch shows of each sample: the rows that count, by number. */
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

test.each([2, 6])('%i ranks together have the batches of one, pixel for pixel', async (worldSize) => {
  const random = { buckets: { sizes: SIZES, crop: 'random' }, lastBatch: 'pad' } as const;
  const ranks = await ranksOf(worldSize, random);
  expect(together(ranks)).toEqual(together([await run(random)]));
  for (const seen of ranks) {
    expect(seen.map(({ shape }) => shape)).toEqual(ranks[0]!.map(({ shape }) => shape));
    expect(seen.map(({ state }) => state)).toEqual(ranks[0]!.map(({ state }) => state));
    expect(seen.every(({ shape }) => shape[0] === 12 / worldSize)).toBe(true);
  }
});

test('a run goes on behind any batch with other ranks, as if it had never stopped', async () => {
  const expected = together([whole]);
  for (const [after, worldSize] of [
    [0, 3],
    [4, 1],
    [7, 4],
    [11, 2],
  ] as const) {
    const state = whole[after]!.state;
    const seen = await ranksOf(worldSize, { state, lastBatch: 'partial' });
    expect(together(seen)).toEqual(expected.slice(after + 1));
  }
});

test('with other batches behind a state every sample that is left comes once', async () => {
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

test('behind the last batch of an epoch the next epoch comes', async () => {
  const two = await run({ repeat: 2 });
  const dropped = await run({ repeat: 2, lastBatch: 'drop' });
  expect(two.slice(0, whole.length)).toEqual(whole);
  const second = await run({ epoch: 1 });
  expect(await run({ state: whole.at(-1)!.state })).toEqual(second);
  expect(two.slice(whole.length).map(({ numbers }) => numbers)).toEqual(second.map(({ numbers }) => numbers));
  const last = dropped.findLast(({ state }) => state.epoch === 0)!;
  expect((await run({ state: last.state, lastBatch: 'drop' })).map(({ numbers }) => numbers)).toEqual(
    dropped.filter(({ state }) => state.epoch === 1).map(({ numbers }) => numbers),
  );
});

test('what may be held decides what is read again, and nothing else', async () => {
  const again = (options: LoaderOptions) => ranksOf(2, { repeat: 2, lastBatch: 'drop', ...options });
  const held = await again({});
  expect(await again({ holdBytes: 0 })).toEqual(held);
  expect(await again({ holdBytes: 3000 })).toEqual(held);
});

test('where everything is in memory, and in other layouts, the batches are the same', async () => {
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

test('an image is resized to cover its size, and the crop says which part is shown', async () => {
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
    batch.numbers.forEach((number, row) => {
      found.set(number, images.subarray(row * 864, (row + 1) * 864).toString('base64'));
    });
  }
  const shown = Buffer.from(pixels, 'base64');
  numbers.forEach((number, row) => {
    expect(shown.subarray(row * 864, (row + 1) * 864).toString('base64')).toBe(found.get(number));
  });
});
