import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type LoaderOptions, openDataset } from '@shardtool/reader';
import { afterEach, expect, test, vi } from 'vitest';
import { packedSmall } from './datasets.js';
import { batchesOf, keysOf, type Seen, validKeysOf } from './loader-look.js';
import { TIMES } from './repetitions.js';

/** 103 samples in 7 shards: nothing is divided evenly. */
const shards = await packedSmall({ samples: 103 }, { maxShardSamples: 16 });
const base = { transform: 'raw', seed: 3, streams: 12, blockSamples: 4 } as const;

afterEach(() => {
  vi.unstubAllEnvs();
});

/** The batches of all ranks together. */
function everyRank(worldSize: number, options: LoaderOptions, location = shards): Promise<Seen[][]> {
  const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
  return Promise.all(ranks.map((rank) => batchesOf(location, { ...base, ...options, rank, worldSize })));
}

/** Batches of all ranks as one: rank r owns the rows r, r + W, r + 2W, ... */
function together(ranks: readonly Seen[][]): string[][] {
  return ranks[0]!.map((_, b) => {
    const rows = ranks[0]![b]!.keys.length;
    return Array.from({ length: rows }, (_, row) => ranks.map((batches) => batches[b]!.keys[row]!)).flat();
  });
}

/** `npm run test:long` tries all divisors of a batch of 12. */
const WORLD_SIZES = TIMES === 1 ? [3, 4] : [2, 3, 4, 6, 12];
/** Number of processes that are ranks. */
const PROCESSES = TIMES === 1 ? 2 : 4;

test(`with ${WORLD_SIZES.join(', ')} ranks every sample of an epoch is delivered once, in the same global batches`, async () => {
  const alone = await batchesOf(shards, { ...base, globalBatchSize: 12, lastBatch: 'pad' });
  for (const worldSize of WORLD_SIZES) {
    const ranks = await everyRank(worldSize, { globalBatchSize: 12 });
    expect(together(ranks)).toEqual(alone.map(({ keys }) => keys));
    expect(new Set(ranks.flatMap(validKeysOf)).size).toBe(103);
    expect(ranks.flatMap(validKeysOf)).toHaveLength(103);
  }
});

test('the error for a number of ranks that does not divide streams and batch lists those that do', async () => {
  await expect(everyRank(5, { globalBatchSize: 60 })).rejects.toThrow('use 1, 2, 3, 4, 6, 12 ranks');
  await expect(everyRank(8, { globalBatchSize: 12 })).rejects.toThrow('which 8 ranks cannot share evenly');
});

test('the batch size per rank gives the batches of the global batch size', async () => {
  expect(await everyRank(3, { batchSize: 4 })).toEqual(await everyRank(3, { globalBatchSize: 12 }));
});

test('the last batch is padded with marked rows, dropped, or smaller, and every rank has as many batches', async () => {
  const padded = await everyRank(4, { batchSize: 4, lastBatch: 'pad' });
  expect(padded.map((batches) => batches.length)).toEqual([7, 7, 7, 7]);
  expect(padded.map((batches) => batches.at(-1)!.keys.length)).toEqual([4, 4, 4, 4]);
  expect(padded.map((batches) => batches.at(-1)!.valid)).toEqual([
    [1, 1, 0, 0],
    [1, 1, 0, 0],
    [1, 1, 0, 0],
    [1, 0, 0, 0],
  ]);
  const dropped = await everyRank(4, { batchSize: 4, lastBatch: 'drop' });
  expect(dropped.map(keysOf)).toEqual(padded.map((batches) => keysOf(batches.slice(0, 6))));
  const partial = await everyRank(4, { batchSize: 4, lastBatch: 'partial' });
  expect(partial.map((batches) => batches.at(-1)!.valid)).toEqual([[1, 1], [1, 1], [1, 1], [1]]);
  expect(partial.map(validKeysOf)).toEqual(padded.map(validKeysOf));
});

test('a rank without samples of a partial last batch gets one marked row', async () => {
  const ranks = await everyRank(3, { batchSize: 34, lastBatch: 'partial' });
  expect(ranks.map((batches) => batches.at(-1)!.valid)).toEqual([[1], [0], [0]]);
});

test('an epoch that is too short for one batch throws an error if the last batch is dropped', async () => {
  await expect(
    batchesOf(shards, { ...base, batchSize: 104, lastBatch: 'drop', epochsPerLoop: Infinity }),
  ).rejects.toThrow('Epoch 0 has 103 samples, too few for a batch of 104');
});

test('64 ranks share one shard', async () => {
  const location = await packedSmall({ samples: 150 });
  const options = { transform: 'raw', seed: 1, batchSize: 1, worldSize: 64 } as const;
  const alone = await batchesOf(location, { transform: 'raw', seed: 1, batchSize: 64, lastBatch: 'pad' });
  await using dataset = await openDataset(location);
  for (let rank = 0; rank < 64; rank++) {
    const info = await dataset.loader({ ...options, rank }).info();
    expect(info).toMatchObject({ samples: 150, batches: 3, globalBatchSize: 64, streams: 192 });
  }
  for (const rank of [0, 21, 22, 63]) {
    const batches = await batchesOf(location, { ...options, rank });
    expect(batches.map(({ keys, valid }) => [keys, valid])).toEqual(
      alone.map(({ keys, valid }) => [[keys[rank]], [valid[rank]]]),
    );
  }
});

test.each([
  ['torchrun', { RANK: '2', WORLD_SIZE: '4' }],
  ['srun', { SLURM_PROCID: '2', SLURM_NTASKS: '4' }],
])('rank and number of ranks are read from %s', async (_, variables) => {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  await using dataset = await openDataset(shards);
  expect(await dataset.loader({ batchSize: 4 }).info()).toMatchObject({ rank: 2, worldSize: 4, globalBatchSize: 16 });
  const given = await dataset.loader({ batchSize: 4, rank: 0, worldSize: 1 }).info();
  expect(given).toMatchObject({ rank: 0, worldSize: 1 });
});

test(`${PROCESSES} processes on one machine form as many ranks`, async () => {
  const options = { ...base, globalBatchSize: 12, workers: 1 };
  const processes = Array.from({ length: PROCESSES }, (_, rank) => rankInProcess(rank, PROCESSES, options));
  const ranks = await Promise.all(processes);
  const alone = await batchesOf(shards, { ...options, lastBatch: 'pad' });
  expect(together(ranks)).toEqual(alone.map(({ keys }) => keys));
  expect(ranks.flatMap(validKeysOf).toSorted()).toEqual(validKeysOf(alone).toSorted());
});

async function rankInProcess(rank: number, worldSize: number, options: LoaderOptions): Promise<Seen[]> {
  const program = fileURLToPath(new URL('./loader-child.mjs', import.meta.url));
  const child = spawn(process.execPath, [program, JSON.stringify({ location: shards, options })], {
    env: { ...process.env, RANK: String(rank), WORLD_SIZE: String(worldSize) },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 150_000,
  });
  let text = '';
  for await (const chunk of child.stdout) text += chunk;
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Seen);
}
