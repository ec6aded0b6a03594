import { writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  type Batch,
  type LoaderOptions,
  type LoaderState,
  type MixtureOptions,
  type MixturePart,
  openDataset,
  openMixture,
} from '@shardtool/reader';
import { verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedSmall } from './datasets.js';

const a = await packedSmall({ samples: 90, classes: 2 }, { maxShardSamples: 12 });
const b = await packedSmall({ samples: 50, classes: 3 }, { maxShardSamples: 9, format: 'lmdb' });
const c = await packedSmall({ samples: 31 }, { maxShardSamples: 31, format: 'msgpack' });
const parts: MixturePart[] = [
  { dataset: a, name: 'a', weight: 0.5 },
  { dataset: b, name: 'b', weight: 0.3 },
  { dataset: c, name: 'c', weight: 0.2 },
];
const base: LoaderOptions = {
  ...{ transform: [{ name: 'randomResizedCrop', size: 8 }], seed: 7, workers: 1, fields: [], batchSize: 16 },
  ...{ blockSamples: 4, shuffleUnit: 'chunk' },
};
const unweighted = parts.map(({ dataset, name }) => ({ dataset, name }));

interface Seen {
  readonly rows: string[];
  readonly state: LoaderState;
}

const rowsOf = (batch: Batch): string[] =>
  Array.from(batch.indices, (number, row) => `${batch.datasetIndex![row]}:${number}`).filter(
    (_, row) => batch.valid[row] === 1,
  );

/** The batches of a run over a mixture. */
async function run(mixed: readonly MixturePart[], settings: MixtureOptions, options: LoaderOptions): Promise<Seen[]> {
  await using mixture = await openMixture(mixed, settings);
  await using loader = mixture.loader({ ...base, ...options });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push({ rows: rowsOf(batch), state: loader.state() });
  return seen;
}

const flat = (seen: readonly Seen[]): string[] => seen.flatMap(({ rows }) => rows);
const countsOf = (rows: readonly string[]): number[] =>
  [0, 1, 2].map((source) => rows.filter((row) => row.startsWith(`${source}:`)).length);

const whole = await run(parts, {}, { epochsPerLoop: 3 });

test('without weights every sample of all datasets is used once per epoch', async () => {
  const rows = flat(await run(unweighted, {}, {}));
  expect(countsOf(rows)).toEqual([90, 50, 31]);
  expect(new Set(rows).size).toBe(171);
});

test('an epoch has the shares of the weights, and no sample is repeated before all of its dataset were used', () => {
  // c is the first that is used up: 31 / 0.2 = 155, so 77.5 of a and 46.5 of b, rounded half up.
  const rows = flat(whole);
  expect(countsOf(rows)).toEqual([78 * 3, 47 * 3, 31 * 3]);
  for (const [source, size] of [90, 50, 31].entries()) {
    const own = rows.filter((row) => row.startsWith(`${source}:`));
    for (let from = 0; from + size <= own.length; from += size) {
      expect(new Set(own.slice(from, from + size)).size).toBe(size);
    }
  }
});

test('the rows do not depend on workers, and the ranks together have the rows and states of a single rank', async () => {
  expect(await run(parts, {}, { prefetchBatches: 2, workers: 3, readConcurrency: 1, epochsPerLoop: 3 })).toEqual(whole);
  const settings = { group: 4, window: 4 };
  const alone = await run(parts, settings, {});
  const worldSize = 4;
  const ranks = await Promise.all(
    Array.from({ length: worldSize }, (_, rank) =>
      run(parts, settings, { rank, worldSize, batchSize: 16 / worldSize, lastBatch: 'partial' }),
    ),
  );
  alone.forEach(({ rows, state }, i) => {
    const dealt = rows.map((_, row) => ranks[row % worldSize]![i]!.rows[Math.floor(row / worldSize)]);
    expect(dealt).toEqual(rows);
    for (const rank of ranks) expect(rank[i]!.state).toEqual(state);
  });
});

test('a state resumes at the exact sample, with another batch size and other ranks, and is plain data', async () => {
  const settings = { group: 4, window: 4 };
  const seen = await run(parts, settings, { epochsPerLoop: 2 });
  const at = 5;
  const state = JSON.parse(JSON.stringify(seen[at]!.state));
  expect(JSON.stringify(state).length).toBeLessThan(900);
  const rest = flat(seen.slice(at + 1, 10));
  expect(flat(await run(parts, settings, { state, batchSize: 10 })).slice(0, rest.length)).toEqual(rest);
  const ranks = await Promise.all(
    [0, 1].map((rank) => run(parts, settings, { state, rank, worldSize: 2, batchSize: 6, lastBatch: 'partial' })),
  );
  expect(ranks.flatMap(flat).sort()).toEqual(flat(await run(parts, settings, { state })).sort());
});

test('with perBatch each batch has exactly these numbers of rows, and each rank its part', async () => {
  const settings: MixtureOptions = { perBatch: [8, 4, 4] };
  for (const { rows } of await run(unweighted, settings, { batchSize: undefined as never })) {
    expect(countsOf(rows)).toEqual([8, 4, 4]);
  }
  for (const rank of [0, 1]) {
    const seen = await run(unweighted, settings, { rank, worldSize: 2, batchSize: 8 });
    for (const { rows } of seen) expect(countsOf(rows)).toEqual([4, 2, 2]);
  }
  await expect(run(unweighted, settings, { batchSize: 20 })).rejects.toThrow('perBatch makes batches of 16 rows');
});

test('weights can change at any position, and exactly the remaining samples of each dataset follow', async () => {
  const at = 6;
  const before = flat(whole.slice(0, at + 1));
  await using mixture = await openMixture(parts);
  await using loader = mixture.loader(base);
  const state = await loader.withWeights(whole[at]!.state, [1, 1, 4]);
  const after = flat(await run(parts, {}, { state, epochsPerLoop: 2 }));
  for (const [source, size] of [90, 50, 31].entries()) {
    const own = [...before, ...after].filter((row) => row.startsWith(`${source}:`));
    for (let from = 0; from + size <= own.length; from += size) {
      expect(new Set(own.slice(from, from + size)).size).toBe(size);
    }
  }
  // c is used up first: 31 samples of it, and a quarter of that of each other dataset.
  expect(countsOf(after)).toEqual([16, 16, 62]);
  await expect(loader.withWeights(whole[at]!.state, [1, 1])).rejects.toThrow('2 weights for the 3 datasets');
});

test('a mixture of one dataset is identical to that dataset, to the byte and the state', async () => {
  const bytesOf = async (dataset: Awaited<ReturnType<typeof openDataset>>) => {
    await using opened = dataset;
    await using loader = opened.loader({ ...base, epochsPerLoop: 2 });
    const seen: unknown[] = [];
    for await (const batch of loader)
      seen.push([Buffer.from(batch.images!).toString('base64'), batch.keys, loader.state()]);
    return seen;
  };
  expect(await bytesOf(await openMixture([{ dataset: a, weight: 3 }]))).toEqual(await bytesOf(await openDataset(a)));
});

test('a dataset that is listed twice has other random numbers the second time', async () => {
  await using mixture = await openMixture([{ dataset: c }, { dataset: c }]);
  await using loader = mixture.loader(base);
  const images = new Map<string, string>();
  for await (const batch of loader) {
    const bytes = batch.images!.length / batch.size;
    for (const [row, name] of rowsOf(batch).entries()) {
      images.set(name, Buffer.from(batch.images!.subarray(row * bytes, (row + 1) * bytes)).toString('base64'));
    }
  }
  expect(images.size).toBe(62);
  const changed = Array.from({ length: 31 }, (_, number) => images.get(`0:${number}`) !== images.get(`1:${number}`));
  expect(changed.filter(Boolean).length).toBeGreaterThan(25);
});

test('class lists are joined by name, concatenated, or kept apart', async () => {
  const labels = async (classLists: MixtureOptions['classLists']) => {
    await using mixture = await openMixture(unweighted.slice(0, 2), { classLists });
    await using loader = mixture.loader(base);
    const byKey = new Map<string, number>();
    for await (const batch of loader) {
      for (const [row, key] of batch.keys.entries()) {
        byKey.set(`${batch.datasetIndex![row]}:${key.split('/')[0]}`, batch.labels[row]!);
      }
    }
    return { classes: mixture.classes, labels: Object.fromEntries([...byKey].sort()) };
  };
  expect(await labels(undefined)).toEqual({
    classes: ['a', 'b', 'c'],
    labels: { '0:a': 0, '0:b': 1, '1:a': 0, '1:b': 1, '1:c': 2 },
  });
  expect(await labels('offset')).toEqual({
    classes: ['a', 'b', 'a', 'b', 'c'],
    labels: { '0:a': 0, '0:b': 1, '1:a': 2, '1:b': 3, '1:c': 4 },
  });
  expect(await labels('apart')).toEqual({
    classes: [],
    labels: { '0:a': 0, '0:b': 1, '1:a': 0, '1:b': 1, '1:c': 2 },
  });
});

test('a mixture file lists datasets by relative or absolute paths, and is accepted in place of a folder', async () => {
  const folder = emptyFolder();
  const file = path.join(folder, 'mix.json');
  const mixture = parts.map((part) => ({ ...part, dataset: path.relative(folder, part.dataset as string) }));
  writeFileSync(file, JSON.stringify({ mixture, end: 'c' }));
  await using dataset = await openDataset(file);
  expect([dataset.size, dataset.shards.length]).toEqual([171, 15]);
  await using loader = dataset.loader({ ...base, epochsPerLoop: 3 });
  const rows: string[] = [];
  for await (const batch of loader) rows.push(...rowsOf(batch));
  expect(rows).toEqual(flat(whole));
  await expect(openDataset(file, { split: 'train' })).rejects.toThrow('split is for a single dataset');
  writeFileSync(file, '{ "mixture": [{ "dataset": "a", "wieght": 1 }] }');
  await expect(openDataset(file)).rejects.toThrow(/wieght/);
});

test('ls and plan accept a mixture in place of a folder', async () => {
  const folder = emptyFolder();
  const file = path.join(folder, 'mix.json');
  writeFileSync(file, JSON.stringify({ mixture: parts }));
  expect((await shardtool('ls', file)).stdout).toMatch(/15 tar and lmdb and msgpack shards, 171 samples, .* 3 classes/);
  const { stdout } = await shardtool('plan', file, '--batch-size', '16', '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    ...{ samples: 156, batches: 10, group: 1, window: 16 },
    datasets: [
      { size: 90, samples: 78 },
      { size: 50, samples: 47 },
      { size: 31, samples: 31, passes: 1 },
    ],
  });
  expect((await shardtool('plan', file)).stdout).toMatch(/c: 31 of 31 samples \(1\.000 passes\), 19\.87 %/);
  const some = await shardtool(
    'plan',
    file,
    '--batch-size',
    '16',
    '--streams',
    '12',
    '--where',
    'class != "b"',
    '--json',
  );
  const { datasets } = JSON.parse(some.stdout) as { datasets: { size: number; streams: number }[] };
  expect(datasets.map(({ size }) => size)).toEqual([45, 33, 31]);
  expect(datasets.reduce((sum, { streams }) => sum + streams, 0)).toBeLessThan(16);
  expect(await shardtool('plan', file, '--step-ms', '80')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('plan each of its datasets instead'),
  });
});

test('each dataset of a mixture can have its own selection', async () => {
  const mixed: MixturePart[] = [
    { dataset: a, classes: ['b'] },
    { dataset: b, where: 'cls in (0, 2)' },
  ];
  await using mixture = await openMixture(mixed);
  await using loader = mixture.loader(base);
  const kinds = new Map<string, number>();
  for await (const batch of loader) {
    for (const [row, key] of batch.keys.entries()) {
      const kind = `${batch.datasetIndex![row]}:${key.split('/')[0]}`;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
  }
  expect(Object.fromEntries(kinds)).toEqual({ '0:b': 45, '1:a': 17, '1:c': 16 });
});

test('datasets that cannot be mixed are rejected with one sentence before the first batch', async () => {
  const failure = async (mixed: readonly MixturePart[], settings: MixtureOptions = {}, options: LoaderOptions = {}) =>
    run(mixed, settings, options).then(
      () => 'none',
      (error: Error) => `${error.name}: ${error.message}`,
    );
  const [first, second] = parts as [MixturePart, MixturePart];
  for (const weight of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(await failure([first, { ...second, weight }])).toMatch(/^OptionError: .*weight/);
  }
  expect(await failure([])).toMatch(/^OptionError: .*at least one dataset/);
  expect(await failure([first, { dataset: b }])).toMatch(/has no weight, but other datasets of the mixture have one/);
  expect(await failure(parts, { end: 'd' })).toMatch(/end is "d": it must be 'first', 'last', or one of a, b, c/);
  expect(await failure(parts, { perBatch: [1, 2, 3] })).toMatch(/weights and perBatch/);
  const unweighed = [{ dataset: a }, { dataset: b }];
  expect(await failure(unweighed, { perBatch: [8, 800] }, { batchSize: undefined })).toMatch(
    /^OptionError: perBatch takes 800 rows of dataset 1 for each batch/,
  );
  expect(await failure([{ dataset: a, where: 'width > 9999' }, second])).toMatch(/OptionError/);
  expect(await failure(parts, {}, { where: 'width > 9999' })).toMatch(/OptionError: No sample is selected/);
  expect(await failure(parts, {}, { classes: ['c'] })).toMatch(
    /a has a share of the mixture, but none of its samples is selected/,
  );
  expect(await failure(parts, {}, { indices: [0] })).toMatch(/indices .* without weight, or remove indices/);
  const few = [{ dataset: a, name: 'a', where: 'width > 1' }, { dataset: b }];
  expect(await failure(few, {}, { indices: [0] })).toMatch(/without the choice of samples of a/);
  expect(await failure(unweighed, { samplesPerEpoch: 9 }, { samplesPerEpoch: 8 })).toMatch(/opened with 9/);
  expect(await failure(parts, {}, { state: { version: 1 } })).toMatch(/StateError: .*single dataset/);
  expect(await failure(parts.slice(0, 2), {}, { state: whole[2]!.state })).toMatch(
    /StateError: .*mixture of 3 datasets/,
  );
  expect(await failure([first, { ...second, weight: 0.4 }, parts[2]!], {}, { state: whole[2]!.state })).toMatch(
    /StateError: .*withWeights/,
  );
  await using dataset = await openDataset(a);
  await using loader = dataset.loader({ ...base, state: whole[2]!.state });
  await expect(loader.info()).rejects.toThrow('belongs to a mixture');
});

test('verify of a mixture says that its datasets are verified one by one', async () => {
  const file = path.join(emptyFolder(), 'mix.json');
  writeFileSync(file, JSON.stringify({ mixture: [{ dataset: a }, { dataset: b }] }));
  await expect(verify(file, { workers: 1 })).rejects.toThrow(
    'If it is a mixture, pass the folder of each of its datasets',
  );
});

test('images of different output sizes, and fields that one dataset lacks, are rejected with one sentence before the first batch', async () => {
  const square = await packedSmall({ samples: 6 }, { resize: 16 });
  const two = [
    { dataset: a, name: 'a' },
    { dataset: square, name: 'square' },
  ];
  await expect(run(two, {}, { transform: [] })).rejects.toThrow(
    /Images of a come out as \d+x\d+ and those of square as \d+x\d+: add a step/,
  );
});
