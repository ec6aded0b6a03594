import { spawnSync } from 'node:child_process';
import { openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { CONTROL_WORD } from '#reader/loader/ring/control';
import { packedPhotos, packedSmall } from './datasets.js';
import { TIMES } from './repetitions.js';
import { runningThreads } from './running-threads.js';

const shards = await packedSmall({ samples: 60 }, { maxShardSamples: 10 });
const OPTIONS = {
  ...{ batchSize: 8, epochsPerLoop: Infinity, workers: 1 },
  transform: [{ name: 'randomResizedCrop', size: 32 }],
} as const;

/** Runs a program with `dataset` and `dataset.loader(options)` in a separate process, which must exit by itself. */
function run(program: string, location = shards, flags: readonly string[] = []) {
  const source = `
    import { openDataset } from '@shardtool/reader';
    import { syncBuiltinESMExports } from 'node:module';
    import workerThreads, { Worker } from 'node:worker_threads';
    // The decode workers; on a slow disk there are also reading threads.
    const workers = [];
    workerThreads.Worker = class extends Worker {
      constructor(script, options) {
        super(script, options);
        if (String(script).includes('decode-worker')) workers.push(this);
      }
    };
    syncBuiltinESMExports();
    const dataset = await openDataset(${JSON.stringify(location)});
    const options = { ...${JSON.stringify(OPTIONS)}, epochsPerLoop: Infinity, workers: 2 };
    ${program}`;
  const { stdout, stderr, status, signal } = spawnSync(
    process.execPath,
    [...flags, '--input-type=module', '-e', source],
    {
      encoding: 'utf8',
      timeout: 180_000,
      cwd: process.cwd(),
    },
  );
  return { stdout, stderr, status, signal };
}

test('a program that stops requesting batches exits, although workers are waiting and batches are being prepared', () => {
  const { status, stdout, signal } = run(`
    const iterator = dataset.loader(options)[Symbol.asyncIterator]();
    await iterator.next();
    console.log('asked once');`);
  expect({ status, stdout, signal }).toEqual({ status: 0, stdout: 'asked once\n', signal: null });
});

test('a program that exits in the middle of decoding ends with its own exit code, and no worker crashes it', async () => {
  const photos = await packedPhotos();
  for (let i = 0; i < 1 * TIMES; i++) {
    const exits = `
      let batches = 0;
      const busy = { ...options, transform: 'train224', workers: 4 };
      for await (const batch of dataset.loader(busy)) if (++batches === ${(i % 8) + 2}) process.exit(3);`;
    const { status, signal } = run(exits, photos);
    expect({ status, signal }).toEqual({ status: 3, signal: null });
  }
});

test('a program that exits while workers load native libraries ends with its own exit code', async () => {
  const photos = await packedPhotos();
  for (let i = 0; i < 4 * TIMES; i++) {
    const { status, signal, stderr } = run(
      `for await (const batch of dataset.loader({ ...options, transform: 'train224', workers: 16 })) process.exit(3);`,
      photos,
    );
    expect({ status, signal, stderr }).toEqual({ status: 3, signal: null, stderr: '' });
  }
});

/** How long a loader waits for workers that do not end, or do not start. */
const PATIENCE_MS = 5000;

/** A program in which `hook` runs in the decode workers of a loop before anything else; reports how the loop ends. */
const sabotaged = (hook: string, workers: number) => `
  const hook = ${JSON.stringify(`data:text/javascript,${encodeURIComponent(hook)}`)};
  process.env.NODE_OPTIONS = '--import ' + hook;
  const begin = performance.now();
  try {
    for await (const batch of dataset.loader({ ...options, workers: ${workers} }));
    say('went on');
  } catch (error) {
    say(error.name + ': ' + error.message);
  }
  say(performance.now() - begin < ${PATIENCE_MS} ? 'soon' : 'late');`;

// The hook runs in every thread that starts after it is set: in the workers, but not in the main thread.
const inWorker = (code: string) => `
  import { isMainThread } from 'node:worker_threads';
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

const inSecondAtStart = (code: string) => `
  import { isMainThread, workerData } from 'node:worker_threads';
  if (!isMainThread && workerData.worker === 1) { ${code} }`;

const atTheEnd = `
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

const noStart = `
  import { isMainThread, workerData } from 'node:worker_threads';
  if (!isMainThread && workerData.worker === 0) throw new Error('no start');
  // But not reading threads, which exist if the disk is slow.
  if (!isMainThread && workerData.worker === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;

/** Programs by name. They run in turn in one process, because starting it takes longer than most of them. Each calls `say`. */
const PROGRAMS = {
  waits: `
    // Reading threads, which exist if the disk looks slow, receive messages about files.
    let posted = 0;
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (...given) { if (workers.includes(this)) posted++; return post.apply(this, given); };
    let heard = 0;
    const emit = Worker.prototype.emit;
    Worker.prototype.emit = function (name, ...given) { if (name === 'message' && workers.includes(this) && given[0].kind !== 'ready') heard++; return emit.call(this, name, ...given); };
    let images = 0;
    for await (const batch of dataset.loader({ ...options, epochsPerLoop: 5 })) images += batch.size;
    say(images, posted, heard);`,
  breaksOut: `
    const threads = () => readdirSync('/proc/self/task').length;
    const before = threads();
    for await (const batch of dataset.loader({ ...options, workers: 6 })) break;
    say(threads() - before < 6 ? 'gone' : 'still there');`,
  diesBetween: `
    const loader = dataset.loader({ ...options, epochsPerLoop: 1 });
    for (let epoch = 0; epoch < 2; epoch++) {
      let images = 0;
      for await (const batch of loader) images += batch.size;
      say(images);
      if (epoch === 0) await workers[0].terminate();
    }
    await loader.close();
    say(workers.length);`,
  fewerCores: `
    const loader = dataset.loader({ ...options, epochsPerLoop: 1, workers: undefined });
    process.env.LOCAL_WORLD_SIZE = '1000000';
    await loader.info();
    delete process.env.LOCAL_WORLD_SIZE;
    let images = 0;
    for await (const batch of loader) images += batch.size;
    await loader.close();
    say(images);`,
  noThreadLeft: `
    const Usual = workerThreads.Worker;
    const set = (Worker) => { workerThreads.Worker = Worker; syncBuiltinESMExports(); };
    set(class extends Usual {
      constructor(script, options) {
        if (options.name === 'Decode worker 1') throw new Error('no thread is left');
        super(script, options);
      }
    });
    const loader = dataset.loader({ ...options, epochsPerLoop: 1 });
    const count = async () => {
      let images = 0;
      for await (const batch of loader) images += batch.size;
      return images;
    };
    await count().catch((error) => say(error.name + ': ' + error.message));
    set(Usual);
    say(await count());
    await loader.close();`,
  isTerminated: `
    let batches = 0;
    try {
      for await (const batch of dataset.loader(options)) if (++batches === 3) void workers[0].terminate();
    } catch (error) {
      say(error.name + ': ' + error.message);
    }`,
  cannotStart: `
    for (let i = 0; i < ${1 + TIMES}; i++) {
      const steps = { pixels: { module: './nowhere.mjs' } };
      const iterator = dataset.loader({ ...options, customSteps: steps, workers: 1 + ((2 * i) % 4) })[Symbol.asyncIterator]();
      await iterator.next().catch((error) => say(error.message.includes('nowhere.mjs')));
    }`,
  throws: sabotaged(inWorker("throw new TypeError('out of the blue')"), 1),
  exits: sabotaged(inWorker('process.exit(7)'), 1),
  runsOutOfHeap: sabotaged(inWorker('const all = []; for (;;) all.push(new Array(100_000).fill(calls));'), 1),
  throwsAtStart: sabotaged(inSecondAtStart("throw new Error('nothing can be loaded')"), 2),
  exitsAtStart: sabotaged(inSecondAtStart('process.exit(7)'), 2),
  neverStarts: sabotaged(noStart, 2),
  neverEnds: `
    process.env.NODE_OPTIONS = '--import ' + ${JSON.stringify(`data:text/javascript,${encodeURIComponent(atTheEnd)}`)};
    const loader = dataset.loader({ ...options, epochsPerLoop: 1 });
    let images = 0;
    for await (const batch of loader) images += batch.size;
    await new Promise((resolve) => setTimeout(resolve, 100));
    await loader.close();
    say(images, 'closed');`,
} as const;

const programs = Object.entries(PROGRAMS).map(
  ([name, program]) => `
    workers.length = 0;
    delete process.env.NODE_OPTIONS;
    await (async (said) => {
      const say = (...words) => said.push(words.join(' '));
      await (async () => { ${program} })();
      console.log(JSON.stringify({ ${name}: said }));
    })([]);`,
);
const ended = run(`const { readdirSync } = await import('node:fs'); ${programs.join('')}`, shards, [
  '--max-old-space-size=64',
]);
/** Output by program; programs that the process did not reach are missing. */
const said: Readonly<Record<string, string[]>> = Object.assign(
  {},
  ...ended.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line || '{}')),
);

/** The output of a program. */
function lines(name: keyof typeof PROGRAMS): string[] {
  return said[name] ?? [`it did not come so far: ${ended.stderr}`];
}

test('whatever happens to workers, the process continues and exits normally', () => {
  expect(ended).toMatchObject({ status: 0, signal: null, stderr: '' });
});

test('a program that waits for a batch is kept alive until it is ready, and no message is posted per sample or batch', () => {
  expect(lines('waits')).toEqual(['300 0 0']);
});

test('breaking out of the loop ends the workers', () => {
  expect(lines('breaksOut')).toEqual(['gone']);
});

test('a worker that throws ends the loop with its reason', () => {
  expect(lines('throws')[0]).toMatch(/^WorkerDiedError: .*out of the blue/);
});

test('a worker that exits ends the loop with its reason', () => {
  expect(lines('exits')[0]).toMatch(/^WorkerDiedError: .*exit code 7/);
});

test('a worker that runs out of heap ends the loop with its reason', () => {
  expect(lines('runsOutOfHeap')[0]).toMatch(/^WorkerDiedError: .*(memory|heap)/);
});

test('if one worker throws during startup, the loop and the other workers end immediately', () => {
  expect(lines('throwsAtStart')).toEqual([expect.stringMatching(/^WorkerDiedError: .*nothing can be loaded$/), 'soon']);
});

test('if one worker exits during startup, the loop and the other workers end immediately', () => {
  expect(lines('exitsAtStart')).toEqual([expect.stringMatching(/^WorkerDiedError: .*exit code 7/), 'soon']);
});

test('workers that end with an error, or not at all, when the loader is closed, do not prevent closing', () => {
  expect(lines('neverEnds')).toEqual(['60 closed']);
});

test('a worker that dies between two loops is replaced for the second', () => {
  expect(lines('diesBetween')).toEqual(['60', '60', '4']);
});

test('a loop that was set up when the process had fewer cores is complete', () => {
  expect(lines('fewerCores')).toEqual(['60']);
});

test('a worker for which the system has no thread ends the loop with its reason, and the next loop is complete', () => {
  expect(lines('noThreadLeft')).toEqual(['WorkerDiedError: Decode worker 1 cannot start: no thread is left', '60']);
});

test('a worker that is terminated ends the loop with its reason', () => {
  // A thread that was terminated before it began has exit code 0.
  expect(lines('isTerminated')).toEqual([expect.stringMatching(/^WorkerDiedError: .*exit code [01]/)]);
});

test('a worker that cannot start ends the loop with its reason, and the process continues, while others are still starting', () => {
  expect(lines('cannotStart')).toEqual(Array(1 + TIMES).fill('true'));
});

test('a worker that cannot start ends the loop with its reason, although another never finishes starting', () => {
  expect(lines('neverStarts')[0]).toBe('WorkerDiedError: Decode worker 0 failed: no start');
});

test('an abort signal ends the loop with its reason', async () => {
  await using dataset = await openDataset(shards);
  const controller = new AbortController();
  const loader = dataset.loader({ ...OPTIONS, signal: controller.signal });
  let batches = 0;
  const loop = async () => {
    for await (const _ of loader) if (++batches === 3) controller.abort(new Error('enough'));
  };
  await expect(loop()).rejects.toThrow('enough');
  expect(batches).toBe(3);
});

test('an abort signal ends a pending wait', async () => {
  await using dataset = await openDataset(await packedPhotos());
  const controller = new AbortController();
  const loader = dataset.loader({ ...OPTIONS, batchSize: 60, transform: 'train224', signal: controller.signal });
  const iterator = loader[Symbol.asyncIterator]();
  await iterator.next();
  const pending = iterator.next();
  controller.abort(new Error('at once'));
  await expect(pending).rejects.toThrow('at once');
});

test('a shard that is truncated while it is read ends the loop with an error that names it', async () => {
  const { truncate } = await import('node:fs/promises');
  const location = await packedPhotos();
  await using dataset = await openDataset(location);
  await truncate(`${location}/000002.tar`, 4096);
  const loop = async () => {
    for await (const _ of dataset.loader({ ...OPTIONS, epochsPerLoop: 1 }));
  };
  await expect(loop()).rejects.toThrow(/000002\.tar ends at byte 4096/);
});

test('consecutive loaders leave no thread behind', async () => {
  await using dataset = await openDataset(shards);
  let after = 0;
  for (let i = 0; i < 3; i++) {
    const loader = dataset.loader({ ...OPTIONS, epochsPerLoop: 1, workers: 3 });
    for await (const _ of loader);
    await loader.close();
    if (i === 0) after = runningThreads();
  }
  expect(runningThreads()).toBeLessThanOrEqual(after + 1);
});
