import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type LoaderOptions, type LoaderState, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { chooseCodec } from '#reader/codec/select';
import { emptyFolder, packedSmall } from './datasets.js';
import { batchesOf, keysOf, linesOf, look, type Seen, validKeysOf } from './loader-look.js';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

const random = randomOf('kills of a loader');

const shards = await packedSmall({ samples: 150, classes: 3 }, { maxShardSamples: 12 });

/** Random crops, so that the pixels of a sample identify its epoch; blocks are read and freed all the time. */
const base = {
  transform: [{ name: 'randomResizedCrop', size: 24 }, { name: 'randomHorizontalFlip' }],
  seed: 11,
  streams: 12,
  blockSamples: 4,
  shuffleUnit: 'chunk',
} as const;

/** Batches, and the state after each as it is read back from a file. */
async function withStates(options: LoaderOptions): Promise<{ seen: Seen[]; states: LoaderState[] }> {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ workers: 1, ...options });
  const seen: Seen[] = [];
  const states: LoaderState[] = [];
  for await (const batch of loader) {
    seen.push(look(batch));
    states.push(JSON.parse(JSON.stringify(loader.state())));
  }
  return { seen, states };
}

const run = await withStates({ ...base, batchSize: 16, epochsPerLoop: 2 });
const lines = linesOf(run.seen);

test.each([0, 4, 8, 9, 10, 17])('a run resumed after batch %i continues like an uninterrupted one', async (b) => {
  const repeat = b < 9 ? 2 : 1;
  const rest = await batchesOf(shards, { ...base, batchSize: 16, epochsPerLoop: repeat, state: run.states[b] });
  expect(rest).toEqual(run.seen.slice(b + 1));
});

test('a state that was taken at the very end of an epoch resumes with the next epoch', async () => {
  const next = await batchesOf(shards, { ...base, batchSize: 16, state: run.states[9] });
  expect(next).toEqual(run.seen.slice(10));
  const third = await batchesOf(shards, { ...base, batchSize: 16, state: run.states[19] });
  expect(third.map(({ epoch }) => epoch)).toEqual(Array(10).fill(2));
});

test('a state resumes with other workers, prefetching and batch sizes with the same samples and the same pixels', async () => {
  for (const other of [
    { batchSize: 16, workers: 3, prefetchBatches: 1 },
    { batchSize: 7, prefetchBatches: 6, readConcurrency: 1 },
    { batchSize: 40, checksum: 'always' },
  ] as const) {
    const rest = await batchesOf(shards, { ...base, epochsPerLoop: 2, state: run.states[3], ...other });
    expect(linesOf(rest)).toEqual(lines.slice(64));
  }
});

test('a state resumes with another number of ranks, again and again', async () => {
  const resumed = (worldSize: number, batchSize: number, state: LoaderState) =>
    Promise.all(
      Array.from({ length: worldSize }, async (_, rank) => {
        await using dataset = await openDataset(shards);
        await using loader = dataset.loader({ ...base, workers: 1, rank, worldSize, batchSize, state });
        const seen: Seen[] = [];
        for await (const batch of loader) {
          seen.push(look(batch));
          if (seen.length === 3) break;
        }
        return { seen, state: loader.state() };
      }),
    );
  const four = await resumed(4, 5, run.states[2]!);
  expect(four.map(({ state }) => state)).toEqual(Array(4).fill({ ...four[0]!.state, position: 48 + 60 }));
  expect(dealtOut(four.map(({ seen }) => linesOf(seen)))).toEqual(lines.slice(48, 108));
  const three = await resumed(3, 4, four[0]!.state);
  expect(dealtOut(three.map(({ seen }) => linesOf(seen)))).toEqual(lines.slice(108, 144));
});

/** The rows of all ranks in the global order: taken in turn. */
function dealtOut(ranks: readonly string[][]): string[] {
  return ranks[0]!.flatMap((_, row) => ranks.map((rows) => rows[row]!));
}

test('a second loop after a break begins the next epoch, and the state stays at the break', async () => {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...base, workers: 1, batchSize: 16, epochsPerLoop: 3 });
  let batches = 0;
  for await (const _ of loader) if (++batches === 4) break;
  expect(loader.state()).toEqual(run.states[3]);
  for await (const batch of loader) {
    expect(look(batch)).toEqual(run.seen[10]);
    break;
  }
  expect(loader.state()).toEqual(run.states[10]);
});

test('setting the epoch of a state with setEpoch keeps its position, and another epoch starts at its beginning', async () => {
  await using dataset = await openDataset(shards);
  await using resumed = dataset.loader({ ...base, workers: 1, batchSize: 16, state: run.states[3] });
  resumed.setEpoch(0);
  expect((await resumed.info()).batches).toBe(6);
  for await (const batch of resumed) {
    expect(look(batch)).toEqual(run.seen[4]);
    break;
  }
  await using other = dataset.loader({ ...base, workers: 1, batchSize: 16, state: run.states[3] });
  other.setEpoch(1);
  for await (const batch of other) {
    expect(look(batch)).toEqual(run.seen[10]);
    break;
  }
});

test('a loop over an epoch that its state has finished is empty, and the next loop gives the next epoch', async () => {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...base, workers: 1, batchSize: 16, state: run.states[9] });
  loader.setEpoch(0);
  expect((await loader.info()).batches).toBe(0);
  for await (const _ of loader) expect.unreachable();
  for await (const batch of loader) {
    expect(look(batch)).toEqual(run.seen[10]);
    break;
  }
});

test('a state is available before the first batch', async () => {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...base, batchSize: 16, state: run.states[5] });
  expect(() => loader.state()).toThrow('There is no state before the first batch');
  await loader.info();
  expect(loader.state()).toEqual(run.states[5]);
});

test('weights that are not integers, classes and short epochs resume correctly', async () => {
  const weights = { a: 2.5, b: 0.5 };
  const choices = [{ weights }, { weights, samplesPerEpoch: 70 }, { classes: ['a', 'c'] }, { samplesPerEpoch: 64 }];
  for (const choice of choices) {
    const { seen, states } = await withStates({ ...base, ...choice, batchSize: 16, epochsPerLoop: 3 });
    const epochs = 3 - seen[5]!.epoch;
    const rest = await batchesOf(shards, {
      ...base,
      ...choice,
      batchSize: 16,
      epochsPerLoop: epochs,
      state: states[5],
    });
    expect(linesOf(rest)).toEqual(linesOf(seen.slice(6)));
  }
});

test.each([
  ['another dataset', { dataset: 'f00d' }, {}, /belongs to another dataset \(its identity is f00d/],
  ['another selection', { selection: 'abc' }, {}, /selection/],
  ['a newer version', { version: 3 }, {}, /is for version 3 of the order, but this shardtool knows versions up to 2/],
  ['another seed', {}, { seed: 12 }, /seed/],
  ['other streams', {}, { streams: 24 }, /saved with streams 12/],
  ['other weights', {}, { weights: { a: 2 } }, /selection/],
  ['another way of decoding', {}, { decode: 'exact' as const }, /saved with decode scaled, but decode is exact now/],
  ['an unknown way of decoding', { decode: 'slow' }, {}, /not a state of a loader \(decode: "slow"\)/],
])('a state with %s is rejected with the reason', async (_, change, options, reason) => {
  const state = { ...run.states[3], ...change };
  await expect(batchesOf(shards, { ...base, batchSize: 16, ...options, state })).rejects.toThrow(reason);
});

test('a run that resumes with another codec gets a warning, unless the codecs give the same pixels', async () => {
  const warnings: (Error & { code?: string })[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  try {
    const { codec } = run.states[3]!;
    expect(codec).toBe((await chooseCodec()).name);
    const other = codec === 'sharp' ? 'turbojpeg' : 'sharp';
    const { codec: _none, ...earlier } = run.states[3]!;
    for (const state of [run.states[3], earlier, { ...run.states[3], codec: other, decode: 'exact' as const }]) {
      await batchesOf(shards, { ...base, batchSize: 16, state });
    }
    await new Promise(setImmediate);
    expect(warnings.filter(({ code }) => code === 'SHARDTOOL_OTHER_CODEC')).toEqual([]);
    await batchesOf(shards, { ...base, batchSize: 16, state: { ...run.states[3], codec: other } });
    await new Promise(setImmediate);
    expect(warnings.filter(({ code }) => code === 'SHARDTOOL_OTHER_CODEC').map(({ message }) => message)).toEqual([
      expect.stringContaining(`saved while ${other} decoded JPEGs, but now ${codec} does`),
    ]);
  } finally {
    process.off('warning', note);
  }
});

test('an invalid state is rejected', async () => {
  for (const state of [null, 'state', {}, { version: 1 }, { ...run.states[3], position: -1 }]) {
    await expect(batchesOf(shards, { ...base, batchSize: 16, state })).rejects.toThrow('not a state of a loader');
  }
});

test('resuming late in an epoch reads the rest of the current blocks and what follows, but nothing before', async () => {
  const large = await packedSmall({ samples: 1200 }, { maxShardSamples: 100 });
  const options = {
    transform: 'raw',
    workers: 1,
    batchSize: 24,
    streams: 12,
    blockSamples: 8,
    shuffleUnit: 'chunk',
  } as const;
  await using dataset = await openDataset(large);
  await using first = dataset.loader(options);
  let state: LoaderState | undefined;
  for await (const batch of first) if (batch.index === 39) state = first.state();
  const { files } = dataset;
  const read = files.read.bind(files);
  let bytes = 0;
  files.read = (shard, offset, target) => {
    bytes += target.length;
    return read(shard, offset, target);
  };
  let samples = 0;
  for await (const batch of dataset.loader({ ...options, state })) samples += batch.size;
  expect(samples).toBe(240);
  const mean = dataset.bytes / dataset.size;
  expect(bytes).toBeLessThan(mean * (240 + 12 * 8) * 1.1);
});

/** The data that a reader process has saved: the state, and after how many batches of which run. */
interface Saved {
  readonly state: LoaderState;
  readonly delivered: number;
  readonly run: number;
}

function savedIn(stateFile: string): Saved | undefined {
  return existsSync(stateFile) ? (JSON.parse(readFileSync(stateFile, 'utf8')) as Saved) : undefined;
}

/**
 * Starts a reader that resumes from `stateFile`, and kills it at a random moment after its first batch. Returns
 * the batches up to the last saved state: output after it will be repeated.
 */
async function killedReader(stateFile: string, run: number, options: LoaderOptions): Promise<Seen[]> {
  const program = fileURLToPath(new URL('./loader-child.mjs', import.meta.url));
  const resumed = { ...base, ...options, epochsPerLoop: null, state: savedIn(stateFile)?.state };
  const argument = JSON.stringify({ location: shards, stateFile, run, options: resumed });
  const child = spawn(process.execPath, [program, argument], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 150_000,
  });
  let text = '';
  const isReading = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk) => {
      text += chunk;
      resolve();
    });
  });
  await Promise.race([isReading, ended(child)]);
  await sleep(random() * 30);
  child.kill('SIGKILL');
  await ended(child);
  const saved = savedIn(stateFile);
  const printed = text.split('\n').slice(0, -1);
  const delivered = saved?.run === run ? saved.delivered : 0;
  expect(printed.length).toBeGreaterThanOrEqual(delivered);
  return printed.slice(0, delivered).map((line) => JSON.parse(line) as Seen);
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once('close', () => resolve());
  });
}

test('a reader that is killed repeatedly resumes from its last saved state, without losing or repeating a sample', async () => {
  const stateFile = path.join(emptyFolder(), 'state.json');
  const keys: string[] = [];
  for (let kill = 0; kill < 3 * TIMES; kill++) {
    const options = { batchSize: 3 + (kill % 5) * 7, workers: 1 + (kill % 2), prefetchBatches: 1 + (kill % 4) };
    keys.push(...validKeysOf(await killedReader(stateFile, kill, options)));
  }
  expect(keys.length).toBeGreaterThan(10);
  const whole = await batchesOf(shards, { ...base, batchSize: 50, epochsPerLoop: Math.ceil(keys.length / 150) });
  expect(keys).toEqual(keysOf(whole).slice(0, keys.length));
});
