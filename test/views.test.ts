import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { type Batch, type LoaderOptions, openDataset, type StepInput, VIEW_PRESETS } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { shards as withBad } from './bad-samples.js';
import { emptyFolder, packedPhotos } from './datasets.js';

const shards = await packedPhotos();
const indexed = await packedPhotos({ index: ['crops'] });

const middle: StepInput[] = [
  { name: 'resize', size: 64 },
  { name: 'centerCrop', size: 48 },
];
const stretched: StepInput[] = [
  { name: 'resize', size: [32, 40] },
  { name: 'normalize', mean: [0.5, 0.4, 0.3], std: [0.2, 0.2, 0.3] },
];
const drawn: StepInput[] = [
  { name: 'randomResizedCrop', size: 32, scale: [0.05, 0.3] },
  { name: 'randomHorizontalFlip' },
  { name: 'colorJitter', brightness: 0.4 },
];
const draws = ['randomResizedCrop', 'randomHorizontalFlip'];

/** All batches of one loop, and how many images were decoded with a crop index. */
async function loop(location: string, options: LoaderOptions): Promise<{ batches: Batch[]; spliced: number }> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ batchSize: 16, workers: 1, ...options });
  const batches: Batch[] = [];
  for await (const batch of loader) batches.push(batch);
  const { cropIndex } = await loader.info();
  return { batches, spliced: cropIndex.spliced };
}

const batchesOf = async (options: LoaderOptions, location = shards) => (await loop(location, options)).batches;

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) => new Uint8Array(buffer, byteOffset, byteLength);

/** By key: the checksum of each view of a row, and the random numbers drawn for it. */
function rowsOf(batches: readonly Batch[]): Map<string, unknown> {
  const rows = new Map<string, unknown>();
  for (const { keys, size, views, valid } of batches) {
    for (const [row, key] of keys.entries()) {
      if (valid[row] === 0) continue;
      const seen = Object.entries(views).map(([name, { images, shape, draws: values }]) => {
        const bytes = bytesOf(images);
        const length = bytes.length / (shape[0] * size);
        const sums = Array.from({ length: shape[0] }, (_, view) => {
          const at = (view * size + row) * length;
          return crc32(bytes.subarray(at, at + length));
        });
        const parts = Object.values(values).map((array) => {
          const each = array.length / (shape[0] * size);
          return Array.from({ length: shape[0] }, (_, view) => [
            ...array.subarray((view * size + row) * each, (view * size + row + 1) * each),
          ]);
        });
        return { name, sums, parts };
      });
      rows.set(key, seen);
    }
  }
  return rows;
}

test('views without randomness have the same pixels as loaders with their transforms', async () => {
  const views = await batchesOf({
    decode: 'exact',
    views: { a: { count: 2, transform: middle }, b: { transform: stretched } },
  });
  const a = await batchesOf({ decode: 'exact', transform: middle });
  const b = await batchesOf({ decode: 'exact', transform: stretched });
  expect(views.map(({ size }) => size)).toEqual([16, 16, 16, 12]);
  for (const [i, batch] of views.entries()) {
    const { size } = batch;
    expect(batch.keys).toEqual(a[i]!.keys);
    expect(batch.views.a).toMatchObject({ shape: [2, size, 48, 48, 3], dtype: 'uint8', layout: 'nhwc' });
    expect(batch.views.b).toMatchObject({ shape: [1, size, 3, 32, 40], dtype: 'float32', layout: 'nchw' });
    const { images } = batch.views.a!;
    const expected = Buffer.from(a[i]!.images!);
    expect(Buffer.from(images.subarray(0, images.length / 2)).equals(expected)).toBe(true);
    expect(Buffer.from(images.subarray(images.length / 2)).equals(expected)).toBe(true);
    expect(Buffer.from(batch.images!).equals(expected)).toBe(true);
    expect(batch.views.b!.images).toEqual(b[i]!.images);
  }
});

test('views draw different random numbers, which depend only on seed, epoch, sample and view', async () => {
  const options = {
    seed: 3,
    draws,
    views: { global: { count: 2, transform: drawn }, local: { count: 3, transform: drawn } },
  };
  const rows = rowsOf(await batchesOf(options));
  expect(rows.size).toBe(60);
  const sums = [...rows.values()].flatMap((seen) => (seen as { sums: number[] }[]).flatMap((group) => group.sums));
  expect(new Set(sums).size).toBe(60 * 5);
  expect(rowsOf(await batchesOf({ ...options, workers: 3, prefetchBatches: 2, batchSize: 7 }))).toEqual(rows);
  const ranks = [0, 1, 2].map((rank) => batchesOf({ ...options, rank, worldSize: 3, batchSize: 5 }));
  expect(new Map((await Promise.all(ranks)).flatMap((batches) => [...rowsOf(batches)]))).toEqual(rows);
  expect(rowsOf(await batchesOf({ ...options, epoch: 1 }))).not.toEqual(rows);
  // A group after these changes nothing in them.
  const { local } = options.views;
  const exact = rowsOf(await batchesOf({ ...options, decode: 'exact' }));
  const more = rowsOf(await batchesOf({ ...options, decode: 'exact', views: { ...options.views, more: local } }));
  for (const [key, seen] of exact) expect((more.get(key) as unknown[]).slice(0, 2)).toEqual(seen);
});

test('a run resumes in the middle of an epoch with the same views', async () => {
  const options = { seed: 5, draws, views: { global: { count: 2, transform: drawn }, local: { transform: middle } } };
  const all = await batchesOf(options);
  await using dataset = await openDataset(shards);
  const first = dataset.loader({ ...options, batchSize: 16, workers: 2 });
  let state: unknown;
  for await (const batch of first) {
    state = first.state();
    if (batch.index === 1) break;
  }
  await first.close();
  const rest = rowsOf(await batchesOf({ ...options, batchSize: 9, state }));
  expect(rest).toEqual(rowsOf(all.slice(2)));
});

test('shared steps change all views in the same way, whether they crop, resize or change pixels', async () => {
  const crop: StepInput[] = [{ name: 'randomHorizontalFlip' }, { name: 'randomResizedCrop', size: [90, 80] }];
  const jitter: StepInput[] = [{ name: 'colorJitter', brightness: 0.5, hue: 0.2 }];
  for (const shared of [crop.slice(0, 1), crop, jitter, [...crop, ...jitter]]) {
    const views = { shared, a: { transform: middle }, b: [{ transform: middle }, { transform: middle }] };
    const seen = await batchesOf({ decode: 'exact', views });
    const single = await batchesOf({ decode: 'exact', transform: [...shared, ...middle] });
    for (const [i, batch] of seen.entries()) {
      const expected = Buffer.from(single[i]!.images!);
      expect(Buffer.from(batch.views.a!.images).equals(expected)).toBe(true);
      expect(Buffer.from(batch.views.b!.images).equals(Buffer.concat([expected, expected]))).toBe(true);
    }
  }
});

test('a group that follows another one has the crops and flips of its views, with and without a crop index', async () => {
  const crop = drawn.slice(0, 2);
  const views = {
    other: { transform: drawn },
    student: [{ transform: drawn }, { count: 2, transform: [...crop, { name: 'randomInvert' }] }],
    teacher: { count: 3, follows: 'student', transform: crop },
    again: { follows: 'teacher', transform: drawn },
  } satisfies LoaderOptions['views'];
  for (const [location, cropIndex] of [
    [shards, false],
    [indexed, true],
  ] as const) {
    const batches = await batchesOf({ seed: 4, draws, decode: 'exact', views, cropIndex }, location);
    const rows = [...rowsOf(batches).values()] as { sums: number[]; parts: number[][][] }[][];
    expect(rows).toHaveLength(60);
    for (const [other, student, teacher, again] of rows) {
      expect(teacher!.parts).toEqual(student!.parts);
      expect(again!.sums).toEqual(student!.sums.slice(0, 1));
      expect(other!.parts[0]).not.toEqual(student!.parts[0]!.slice(0, 1));
      expect(new Set(teacher!.sums).size).toBe(3);
    }
  }
});

test('views with only shared steps are copies of each other', async () => {
  const shared: StepInput[] = [
    { name: 'randomResizedCrop', size: 24 },
    { name: 'colorJitter', contrast: 0.5 },
  ];
  const [batch] = await batchesOf({ views: { shared, a: { count: 2, transform: [] } } });
  const { images } = batch!.views.a!;
  expect(images.subarray(0, images.length / 2)).toEqual(images.subarray(images.length / 2));
  expect(new Set(images).size).toBeGreaterThan(50);
});

test('a crop index changes no pixel of any view, whether one decode is shared by all views or not', async () => {
  const tiny: StepInput[] = [{ name: 'randomResizedCrop', size: 16, scale: [0.005, 0.02] }];
  for (const decode of ['exact', 'scaled'] as const) {
    for (const views of [
      { a: { count: 2, transform: tiny } },
      { a: { count: 2, transform: drawn }, b: { count: 6, transform: drawn } },
    ]) {
      const plain = await loop(shards, { decode, views });
      const spliced = await loop(indexed, { decode, views, cropIndex: true });
      expect(rowsOf(spliced.batches)).toEqual(rowsOf(plain.batches));
      expect(plain.spliced).toBe(0);
      // One image of 60 counts twice if its two views are decoded apart.
      if (!('b' in views)) expect(spliced.spliced).toBeGreaterThan(60);
    }
  }
});

test('a bad sample that is skipped leaves zeros in all of its views, and other rows are unchanged', async () => {
  const options = {
    streams: 4,
    draws,
    views: { a: { count: 2, transform: drawn }, b: { count: 3, transform: drawn } },
  };
  const batches = await batchesOf({ ...options, onBad: 'skip' }, withBad);
  let skipped = 0;
  for (const { views, size, valid } of batches) {
    for (const { images, shape, draws: values } of Object.values(views)) {
      const length = images.length / (shape[0] * size);
      for (let at = 0; at < shape[0] * size; at++) {
        const isValid = valid[at % size] === 1;
        expect(images.subarray(at * length, (at + 1) * length).some((value) => value !== 0)).toBe(isValid);
        const crop = values.randomResizedCrop!.subarray(at * 4, at * 4 + 4);
        expect(crop.some((value) => value > 0)).toBe(isValid);
        if (!isValid) skipped++;
      }
    }
  }
  expect(skipped).toBe(5 * 5);
  const replaced = await batchesOf({ ...options, onBad: 'replace' }, withBad);
  for (const [key, seen] of rowsOf(batches)) expect(rowsOf(replaced).get(key)).toEqual(seen);
});

test('draws are the crop in pixels of the image and whether it was mirrored', async () => {
  const half: StepInput[] = [
    { name: 'resize', size: [100, 200] },
    { name: 'centerCrop', size: [50, 100] },
  ];
  const [batch] = await batchesOf({
    batchSize: 60,
    draws: ['CenterCrop', 'random_horizontal_flip'],
    views: {
      a: { transform: [...half, { name: 'randomHorizontalFlip', p: 1 }] },
      b: { transform: [{ name: 'randomHorizontalFlip', p: 0 }, ...half] },
    },
  });
  const { a, b } = batch!.views;
  expect([...a!.draws.randomHorizontalFlip!]).toEqual(new Array(60).fill(1));
  expect([...b!.draws.randomHorizontalFlip!]).toEqual(new Array(60).fill(0));
  const [sizes] = await batchesOf({ batchSize: 60, collate: 'list' });
  expect(batch!.keys).toEqual(sizes!.keys);
  for (let row = 0; row < 60; row++) {
    const { width: w, height: h } = sizes!.list![row]!;
    for (const view of [a!, b!]) {
      const crop = [...view.draws.centerCrop!.subarray(row * 4, row * 4 + 4)];
      for (const [i, value] of [w / 4, h / 4, w / 2, h / 2].entries()) expect(crop[i]).toBeCloseTo(value, 2);
    }
  }
});

test('views have the names of recipes, and a copy of their JSON gives the same views', async () => {
  const file = path.join(emptyFolder(), 'mine.json');
  writeFileSync(file, JSON.stringify(VIEW_PRESETS.dinov2.views));
  const options = { batchSize: 4, samplesPerEpoch: 4, seed: 3 };
  const [[named], [copied]] = [
    await batchesOf({ ...options, views: 'dinov2' }),
    await batchesOf({ ...options, views: file as `${string}.json` }),
  ];
  const { global, local } = named!.views;
  expect([global!.shape, local!.shape]).toEqual([
    [2, 4, 3, 224, 224],
    [8, 4, 3, 96, 96],
  ]);
  expect(rowsOf([copied!])).toEqual(rowsOf([named!]));
});

test.each([
  ['dinov', 'There are no views "dinov"; did you mean "dinov2"? Pass groups of views'],
  [
    'simclr',
    '"simclr" is the name of one transform, not of views: for two views with it, set views to {"view": {"count": 2, "transform": "simclr"}}.',
  ],
  ['nowhere.json', 'The views nowhere.json cannot be read as JSON (ENOENT'],
])('views called %s are an error with a hint', async (name, message) => {
  await expect(batchesOf({ views: name as 'dinov2' })).rejects.toThrow(message);
});

test.each<[LoaderOptions, RegExp]>([
  [{ views: {} }, /names no views: write \{ global/],
  [
    { views: { a: { transform: [{ name: 'resize', size: 9 }] } } },
    /View 0 of views\.a has images of several sizes: add a step/,
  ],
  [
    { views: { a: [{ transform: middle }, { transform: stretched }] } },
    /View 1 of views\.a is 40x32, but the views before it are 48x48/,
  ],
  [{ views: { a: { transform: middle, cuont: 2 } } as never }, /views\.a has no "cuont"; did you mean "count"\?/],
  [
    { views: { aa: { transform: middle }, b: { transform: middle, follows: 'a' } } },
    /views\.b follows "a", which is not a group before it; did you mean "aa"\?/,
  ],
  [
    { views: { a: { transform: middle, follows: 'b' }, b: { transform: middle } } },
    /views\.a follows "b", which is not a group before it: there is none\./,
  ],
  [
    { views: { a: { transform: middle }, b: { transform: middle, count: 2, follows: 'a' } } },
    /views\.b has more views than the group that it follows: a has one view\./,
  ],
  [{ views: { a: { transform: middle, count: 0 } } }, /views\.a has a count of 0: it must be a whole number/],
  [{ views: { a: { transform: [{ name: 'resise' }] } } as never }, /Step 1 of views\.a, .* did you mean "resize"/],
  [
    { views: { shared: stretched, a: { transform: middle } } },
    /Step 2 of views\.shared, normalize, must be in the transform of each view/,
  ],
  [{ views: { a: { transform: middle } }, transform: middle }, /The option transform does not work with views/],
  [{ views: { a: { transform: middle } }, mix: { name: 'mixup' } as never }, /The option mix does not work with views/],
  [{ views: { a: { transform: middle } }, masks: ['seg.png'] }, /The option masks does not work with views/],
  [
    { views: { a: { transform: middle } }, aspectBuckets: [[9, 9]] },
    /The option aspectBuckets does not work with views/,
  ],
  [
    { views: { a: { transform: middle } }, draws: ['randomCrop'] },
    /draws names the step "randomCrop", which no view has/,
  ],
  [
    { views: { a: { transform: middle } }, draws: ['centreCrop'] },
    /draws cannot record the step "centreCrop"; did you mean "centerCrop"\?/,
  ],
  [{ draws: ['centerCrop'] }, /The option draws records what was drawn for views: add views/],
])('views refuse %j by name', async (options, message) => {
  await expect(batchesOf(options)).rejects.toThrow(message);
});
