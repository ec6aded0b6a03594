import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { CONTROL_WORD } from '#reader/loader-control';
import { packedPhotos } from './datasets.js';
import { often } from './repetitions.js';

const shards = await packedPhotos();

/** Runs a program that has `dataset` and `loader(options)`, as a process of its own that must end by itself. */
function run(program: string, flags: readonly string[] = []) {
  const source = `
    import { openDataset } from '@shardtool/reader';
    import { syncBuiltinESMExports } from 'node:module';
    import workerThreads, { Worker } from 'node:worker_threads';
    // The workers that decode; where a disk is slow, there are threads that read, too.
    const workers = [];
    workerThreads.Worker = class extends Worker {
      constructor(script, options) {
        super(script, options);
        if (String(script).includes('decode-worker')) workers.push(this);
      }
    };
    syncBuiltinESMExports();
    const dataset = await openDataset(${JSON.stringify(shards)});
    const options = { batchSize: 8, transform: 'train224', repeat: Infinity, workers: 2 };
    ${program}`;
  const { stdout, stderr, status, signal } = spawnSync(
    process.execPath,
    [...flags, '--input-type=module', '-e', source],
    {
      encoding: 'utf8',
      timeout: 40_000,
      cwd: process.cwd(),
    },
  );
  return { stdout, stderr, status, signal };
}

test('a program that stops asking for batches ends by itself, although workers wait and batches are under way', () => {
  const { status, stdout, signal } = run(`
    const iterator = dataset.loader(options)[Symbol.asyncIterator]();
    await iterator.next();
    console.log('asked once');`);
  expect({ status, stdout, signal }).toEqual({ status: 0, stdout: 'asked once\n', signal: null });
});

test('a program that waits for a batch is kept alive until it is there', () => {
  const { status, stdout } = run(`
    let images = 0;
    for await (const batch of dataset.loader({ ...options, repeat: 3 })) images += batch.size;
    console.log(images);`);
  expect({ status, stdout }).toEqual({ status: 0, stdout: '180\n' });
});

test('breaking out of the loop ends the workers', () => {
  const { status, stdout } = run(`
    import { readdirSync } from 'node:fs';
    const threads = () => readdirSync('/proc/self/task').length;
    const before = threads();
    for await (const batch of dataset.loader({ ...options, workers: 6 })) break;
    console.log(threads() - before < 6 ? 'gone' : 'still there');`);
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'gone\n' });
});

test('an abort signal ends the loop with its reason', async () => {
  const dataset = await openDataset(shards);
  const controller = new AbortController();
  const loader = dataset.loader({ batchSize: 8, transform: 'train224', repeat: Infinity, signal: controller.signal });
  let batches = 0;
  const loop = async () => {
    for await (const _ of loader) if (++batches === 3) controller.abort(new Error('enough'));
  };
  await expect(loop()).rejects.toThrow('enough');
  expect(batches).toBe(3);
  await dataset.close();
});

test('an abort signal ends a wait that is under way', async () => {
  const dataset = await openDataset(shards);
  const controller = new AbortController();
  const loader = dataset.loader({
    batchSize: 60,
    transform: 'train224',
    repeat: Infinity,
    signal: controller.signal,
    workers: 1,
  });
  const iterator = loader[Symbol.asyncIterator]();
  await iterator.next();
  const pending = iterator.next();
  controller.abort(new Error('at once'));
  await expect(pending).rejects.toThrow('at once');
  await dataset.close();
});

/** So long a loader waits for workers that do not end, or do not start. */
const PATIENCE_MS = 5000;

/** What becomes of the loop when `hook` runs in the decode workers before anything else. */
function sabotaged(hook: string, flags: readonly string[] = []): string {
  const { stdout, stderr } = run(
    `
    const hook = ${JSON.stringify(`data:text/javascript,${encodeURIComponent(hook)}`)};
    process.env.NODE_OPTIONS = '--import ' + hook;
    const loader = dataset.loader(options);
    const begin = performance.now();
    try {
      for await (const batch of loader);
      console.log('went on');
    } catch (error) {
      console.log(error.name + ': ' + error.message);
    }
    console.log(performance.now() - begin < ${PATIENCE_MS} ? 'soon' : 'late');`,
    flags,
  );
  return stdout + stderr;
}

// The hook runs in every thread that starts after it is set: in the workers, and not in the main thread.
const inWorker = (code: string) => `
  import { isMainThread, threadId } from 'node:worker_threads';
  if (!isMainThread) {
    const real = WebAssembly.Instance;
    let calls = 0;
    WebAssembly.Instance = function (...parts) {
      const instance = new real(...parts);
      const wrapped = {};
      for (const [name, value] of Object.entries(instance.exports)) {
        wrapped[name] = typeof value !== 'function' ? value : (...given) => {
          if (++calls === 20) { ${code} }
          return value(...given);
        };
      }
      return { exports: wrapped };
    };
  }`;

test.each([
  ['throws', "throw new TypeError('out of the blue')", /WorkerDiedError: .*out of the blue/],
  ['exits', 'process.exit(7)', /WorkerDiedError: .*exit code 7/],
  [
    'runs out of heap',
    'const all = []; for (;;) all.push(new Array(10_000).fill(calls));',
    /WorkerDiedError: .*(memory|heap)/,
  ],
])('a worker that %s ends the loop with its reason', (_, code, reason) => {
  expect(sabotaged(inWorker(code), ['--max-old-space-size=64'])).toMatch(reason);
});

test.each([
  ['throws', "throw new Error('nothing can be loaded')", /WorkerDiedError: .*nothing can be loaded\nsoon/],
  ['exits', 'process.exit(7)', /WorkerDiedError: .*exit code 7.*\nsoon/],
])('where one worker %s while they start, the loop ends at once, and the other workers too', (_, code, reason) => {
  const hook = `
    import { isMainThread, workerData } from 'node:worker_threads';
    if (!isMainThread && workerData.worker === 1) { ${code} }`;
  expect(sabotaged(hook)).toMatch(reason);
});

test('workers that end with an error, or not at all, when the loader is closed, do not keep it open', () => {
  const hook = `
    import { isMainThread, workerData } from 'node:worker_threads';
    if (!isMainThread && workerData.worker !== undefined) {
      const wait = Atomics.wait;
      Atomics.wait = (words, ...given) => {
        const result = wait(words, ...given);
        if (words[${CONTROL_WORD.stop}] !== 1) return result;
        if (workerData.worker === 1) throw new Error('at the end');
        for (;;) wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      };
    }`;
  const { stdout, stderr, status } = run(`
    const hook = ${JSON.stringify(`data:text/javascript,${encodeURIComponent(hook)}`)};
    process.env.NODE_OPTIONS = '--import ' + hook;
    const loader = dataset.loader({ ...options, repeat: 1 });
    let images = 0;
    for await (const batch of loader) images += batch.size;
    await new Promise((resolve) => setTimeout(resolve, 100));
    await loader.close();
    console.log(images, 'closed');`);
  expect({ stdout, status }, stderr).toEqual({ stdout: '60 closed\n', status: 0 });
});

test('a worker that dies between two loops is replaced for the second', () => {
  const { stdout } = run(`
    const loader = dataset.loader({ ...options, repeat: 1 });
    for (let epoch = 0; epoch < 2; epoch++) {
      let images = 0;
      for await (const batch of loader) images += batch.size;
      console.log(images);
      if (epoch === 0) await workers[0].terminate();
    }
    await loader.close();
    console.log(workers.length);`);
  expect(stdout).toBe('60\n60\n4\n');
});

test('a worker that is terminated ends the loop with its reason', () => {
  const { stdout, stderr, status, signal } = run(`
    const loader = dataset.loader(options);
    let batches = 0;
    try {
      for await (const batch of loader) if (++batches === 3) void workers[0].terminate();
    } catch (error) {
      console.log(error.name + ': ' + error.message);
    }`);
  expect({ stdout, stderr, status, signal }).toMatchObject({
    stdout: expect.stringMatching(/WorkerDiedError: .*exit code 1/),
    stderr: '',
    status: 0,
    signal: null,
  });
});

test('a program that exits in the middle of decoding ends with its own exit code, and no worker crashes it', () => {
  for (let i = 0; i < often(2); i++) {
    const { status, signal } = run(`
      let batches = 0;
      for await (const batch of dataset.loader({ ...options, workers: 4 })) if (++batches === ${(i % 8) + 2}) process.exit(3);`);
    expect({ status, signal }).toEqual({ status: 3, signal: null });
  }
});

test('after start no message is posted for a sample or a batch', () => {
  const { stdout } = run(`
    // Threads that read, where the disk looks slow, are told of files.
    let posted = 0;
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (...given) { if (workers.includes(this)) posted++; return post.apply(this, given); };
    let heard = 0;
    const emit = Worker.prototype.emit;
    Worker.prototype.emit = function (name, ...given) { if (name === 'message' && workers.includes(this)) heard++; return emit.call(this, name, ...given); };
    let images = 0;
    let started = 0;
    for await (const batch of dataset.loader({ ...options, repeat: 5 })) {
      if (images === 0) started = heard;
      images += batch.size;
    }
    console.log(images, posted, heard - started);`);
  expect(stdout).toBe('300 0 0\n');
});

test('a shard that is cut under the reader ends the loop with an error that names it', async () => {
  const { truncate } = await import('node:fs/promises');
  const location = await packedPhotos();
  const dataset = await openDataset(location);
  await truncate(`${location}/000002.tar`, 4096);
  const loop = async () => {
    for await (const _ of dataset.loader({ batchSize: 8, transform: 'train224' }));
  };
  await expect(loop()).rejects.toThrow(/000002\.tar ends at byte 4096/);
  await dataset.close();
});

test('loaders one after the other leave no thread behind', async () => {
  const dataset = await openDataset(shards);
  const threads = () => readdirSync('/proc/self/task').length;
  let after = 0;
  for (let i = 0; i < 3; i++) {
    const loader = dataset.loader({ batchSize: 16, transform: 'eval224', workers: 3 });
    for await (const _ of loader);
    await loader.close();
    if (i === 0) after = threads();
  }
  expect(threads()).toBeLessThanOrEqual(after + 1);
  await dataset.close();
});

test('a worker that cannot start ends the loop with its reason, and the process goes on, while others still start', () => {
  const { status, stdout, signal } = run(`
    for (let i = 0; i < 4; i++) {
      const steps = { pixels: { module: './nowhere.mjs' } };
      const iterator = dataset.loader({ ...options, steps, workers: 1 + (i % 4) })[Symbol.asyncIterator]();
      await iterator.next().catch((error) => console.log(error.message.includes('nowhere.mjs')));
    }`);
  expect({ status, stdout, signal }).toEqual({ status: 0, stdout: 'true\n'.repeat(4), signal: null });
});

test('a worker that cannot start ends the loop with its reason although another one never comes to the end of its start', () => {
  const hook = `
    import { isMainThread, workerData } from 'node:worker_threads';
    if (!isMainThread && workerData.worker === 0) throw new Error('no start');
    // Not so threads that read, where the disk is slow.
    if (!isMainThread && workerData.worker === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;
  const { stdout, status } = run(`
    const hook = ${JSON.stringify(`data:text/javascript,${encodeURIComponent(hook)}`)};
    process.env.NODE_OPTIONS = '--import ' + hook;
    const iterator = dataset.loader(options)[Symbol.asyncIterator]();
    await iterator.next().catch((error) => console.log(error.name, error.message));`);
  expect({ stdout, status }).toEqual({ stdout: 'WorkerDiedError Decode worker 0 failed: no start\n', status: 0 });
});
