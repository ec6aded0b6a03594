import { WorkerDiedError } from '@shardtool/base';
import { expect, test } from 'vitest';
import { inlineWorker, type PoolWorker, WorkerPool } from './worker-pool.js';

/** A worker script whose jobs say what it does. */
const SCRIPT = `
const { parentPort, workerData } = require('node:worker_threads');
const stopped = workerData;
parentPort.on('message', async (job) => {
  if (job === null) return parentPort.close();
  if (job.do === 'die') throw new Error('the tape is torn');
  if (job.do === 'exit') process.exit(7);
  if (job.do === 'fail') {
    const error = { name: 'FileError', bases: [], message: 'no disk', stack: 'stack', fields: { path: 'x' } };
    parentPort.postMessage({ error });
  } else if (job.do === 'wait') {
    while (Atomics.load(stopped, 0) === 0) Atomics.wait(stopped, 0, 0, 50);
    parentPort.postMessage({ result: 'stopped' });
  } else parentPort.postMessage({ result: job.value });
});`;

interface Job {
  readonly do?: 'die' | 'exit' | 'fail' | 'wait';
  readonly value?: number;
}

async function run(jobs: Iterable<Job>, size = 2): Promise<unknown[]> {
  const stopped = new Int32Array(new SharedArrayBuffer(4));
  const script = new URL(
    `data:text/javascript,${encodeURIComponent(`import { createRequire } from 'node:module'; const require = createRequire('/'); ${SCRIPT}`)}`,
  );
  const pool = WorkerPool.ofThreads<Job, unknown>(script, size, () => stopped);
  const results: unknown[] = [];
  try {
    await pool.run(
      jobs,
      (result) => results.push(result),
      () => Atomics.store(stopped, 0, 1),
    );
    return results;
  } finally {
    await pool.close();
  }
}

test('every job is done once', async () => {
  const results = await run(Array.from({ length: 20 }, (_, value) => ({ value })));
  expect(results.sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 20 }, (_, i) => i));
});

test('an error is thrown with its class and fields, after the other workers were told to stop', async () => {
  await expect(run([{ do: 'wait' }, { do: 'fail' }, { value: 1 }])).rejects.toMatchObject({
    name: 'FileError',
    message: 'no disk',
    path: 'x',
  });
});

test('if a worker dies, the run ends with its reason and does not wait for other workers forever', async () => {
  await expect(run([{ do: 'wait' }, { do: 'die' }])).rejects.toThrow('the tape is torn');
  await expect(run([{ do: 'wait' }, { do: 'exit' }])).rejects.toThrow('exit code 7');
  await expect(run([{ do: 'exit' }])).rejects.toBeInstanceOf(WorkerDiedError);
});

test('no job starts after a failure', async () => {
  let started = 0;
  function* jobs(): Generator<Job> {
    for (; ; started++) yield started === 3 ? { do: 'fail' } : { value: started };
  }
  await expect(run(jobs(), 1)).rejects.toThrow('no disk');
  expect(started).toBe(3);
});

/** A worker in this thread whose jobs end when the test says so. */
class Slow implements PoolWorker<number, number> {
  readonly started: number[] = [];
  readonly #open = new Map<number, { free: () => void; end: () => void }>();

  post(): void {}

  run(job: number, free: () => void): Promise<number> {
    this.started.push(job);
    return new Promise((resolve) => {
      this.#open.set(job, { free, end: () => resolve(job) });
    });
  }

  async free(job: number): Promise<void> {
    this.#open.get(job)!.free();
    await new Promise(setImmediate);
  }

  async finish(job: number): Promise<void> {
    this.#open.get(job)!.end();
    await new Promise(setImmediate);
  }

  async end(): Promise<void> {}
}

test('a pool that runs inline starts a second job when the first only waits for the disk, and never a third', async () => {
  const own = new Slow();
  const pool = WorkerPool.inline(own);
  const results: number[] = [];
  const run = pool.run(
    [1, 2, 3],
    (result) => results.push(result),
    () => undefined,
  );
  await new Promise(setImmediate);
  expect(own.started).toEqual([1]);
  await own.free(1);
  expect(own.started).toEqual([1, 2]);
  await own.free(2);
  expect(own.started).toEqual([1, 2]);
  await own.finish(1);
  expect(own.started).toEqual([1, 2, 3]);
  await own.finish(3);
  await own.finish(2);
  await run;
  expect(results).toEqual([1, 3, 2]);
  await pool.close();
});

test('if the list of jobs fails, the run ends after its running jobs', async () => {
  function* jobs(): Generator<number> {
    yield 1;
    throw new Error('the plan cannot be read');
  }
  let running = 0;
  const work = async (): Promise<void> => {
    running++;
    await new Promise((resolve) => setTimeout(resolve, 5));
    running--;
  };
  const run = (_: number, free: () => void): Promise<void> => {
    free();
    return work();
  };
  let stops = 0;
  const ended = WorkerPool.inline<number, void>({ ...inlineWorker(work), run }).run(
    jobs(),
    () => undefined,
    () => stops++,
  );
  await expect(ended).rejects.toThrow('the plan cannot be read');
  expect([running, stops]).toEqual([0, 1]);
});
