import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { type Dataset, type Loader, type LoaderOptions, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { packedSmall } from './datasets.js';
import { TIMES } from './repetitions.js';
import { runningThreads } from './running-threads.js';

const shards = await packedSmall({ samples: 48, classes: 2 }, { maxShardSamples: 12 });
const transform = [{ name: 'resize', size: [24, 24] }] as const;
/** A loop over it ends only when it is stopped. `where` makes it read indexes before workers start. */
const endless: LoaderOptions = { transform, batchSize: 8, workers: 1, epochsPerLoop: Infinity, where: 'width > 0' };
const MOMENTS = 100;
/** `npm run test:long` tries them all, `npm test` every ninth: even and odd ones. */
const STRIDE = Math.ceil((MOMENTS / 12) * TIMES);
const tried = Array.from({ length: Math.ceil(MOMENTS / STRIDE) }, (_, i) => i * STRIDE);

/** Milliseconds from the request for the first batch to its delivery. */
async function startTime(dataset: Dataset): Promise<number> {
  await using loader = dataset.loader(endless);
  const begin = performance.now();
  await loader[Symbol.asyncIterator]().next();
  return performance.now() - begin;
}

/** Waits for the k-th of {@link MOMENTS}: first by promises, then by turns of the event loop, then spread over the whole start. */
async function moment(k: number, startMs: number): Promise<void> {
  if (k < 20) for (let i = 0; i < k; i++) await null;
  else if (k < 40) for (let i = 20; i < k; i++) await turn();
  else await sleep(((k - 40) / (MOMENTS - 40)) * 1.3 * startMs);
}

/** Loops until it is stopped, and returns the reason. */
async function loopUntilStopped(loader: Loader): Promise<unknown> {
  try {
    for await (const batch of loader) expect(batch.size).toBe(8);
  } catch (error) {
    return error;
  }
  throw new Error('an endless loop came to its end');
}

test('an abort at any moment ends the loop with its reason, and ends the workers', async () => {
  await using dataset = await openDataset(shards);
  const startMs = await startTime(dataset);
  const before = runningThreads();
  const blocks = { shuffleUnit: 'chunk', streams: 2, blockSamples: 4 } as const;
  const abortAt = async (k: number): Promise<void> => {
    const controller = new AbortController();
    const options = { ...endless, ...(k % 2 === 0 ? blocks : {}), signal: controller.signal };
    const ended = loopUntilStopped(dataset.loader(options));
    await moment(k, startMs);
    controller.abort(new Error(`moment ${k}`));
    expect(await ended).toEqual(new Error(`moment ${k}`));
  };
  for (let at = 0; at < tried.length; at += 4) await Promise.all(tried.slice(at, at + 4).map(abortAt));
  expect(runningThreads()).toBeLessThanOrEqual(before);
});

test('with a signal that is already aborted nothing starts', async () => {
  await using dataset = await openDataset(shards);
  const before = runningThreads();
  const loader = dataset.loader({ ...endless, signal: AbortSignal.abort(new Error('before')) });
  expect(await loopUntilStopped(loader)).toEqual(new Error('before'));
  expect(runningThreads()).toBe(before);
});

test('closing at any moment ends the loop, and the next loop of the same loader is complete', async () => {
  await using dataset = await openDataset(shards);
  const startMs = await startTime(dataset);
  const before = runningThreads();
  const loader = dataset.loader(endless);
  for (let k = 0; k < MOMENTS; k += 3 * STRIDE) {
    const ended = loopUntilStopped(loader);
    await moment(k, startMs);
    // Every second time the next loop starts before the workers of this one have ended.
    const closing = loader.close();
    if (k % 2 === 0) await closing;
    const next = loader[Symbol.asyncIterator]();
    expect((await next.next()).value!.size).toBe(8);
    expect(await ended).toMatchObject({ name: 'LoaderClosedError' });
    await next.return!(undefined);
    await closing;
  }
  expect(runningThreads()).toBeLessThanOrEqual(before);
});

test('leaving a loop at any moment ends the workers', async () => {
  await using dataset = await openDataset(shards);
  const startMs = await startTime(dataset);
  const before = runningThreads();
  for (let k = 0; k < MOMENTS; k += 3 * STRIDE) {
    const iterator = dataset.loader(endless)[Symbol.asyncIterator]();
    const first = iterator.next();
    await moment(k, startMs);
    expect(await iterator.return!(undefined)).toEqual({ value: undefined, done: true });
    expect((await first).value!.size).toBe(8);
  }
  expect(runningThreads()).toBeLessThanOrEqual(before);
});

test('an error in any read ends the loop with it, and the next loop of the same loader reads again', async () => {
  await using dataset = await openDataset(shards);
  const before = runningThreads();
  const { files } = dataset;
  const calls = { index: files.index.bind(files), read: files.read.bind(files) };
  let left = Number.POSITIVE_INFINITY;
  const failing = <Given extends unknown[], Made>(call: (...given: Given) => Promise<Made>) => {
    return async (...given: Given): Promise<Made> => {
      if (--left === 0) throw new Error('the disk is gone');
      return call(...given);
    };
  };
  files.index = failing(calls.index);
  files.read = failing(calls.read);
  const shuffle = { shuffleUnit: 'chunk', streams: 2, blockSamples: 6 } as const;
  const loader = dataset.loader({ ...endless, ...shuffle, epochsPerLoop: 1 });
  let failures = 0;
  for (let k = 1; ; k++) {
    left = k;
    const run = async () => {
      let samples = 0;
      for await (const batch of loader) samples += batch.size;
      return samples;
    };
    const samples = await run().catch((error: Error) => {
      expect(error.message).toBe('the disk is gone');
      failures++;
      return null;
    });
    left = Number.POSITIVE_INFINITY;
    if (samples !== null) {
      expect(samples).toBe(48);
      break;
    }
    loader.setEpoch(0);
    expect(runningThreads()).toBeLessThanOrEqual(before);
  }
  expect(failures).toBeGreaterThan(8);
  await loader.close();
});
