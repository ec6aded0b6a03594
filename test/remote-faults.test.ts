import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { addOverlay, type Batch, type LoaderReport, openDataset } from '@shardtool/reader';
import { CacheFolder } from '@shardtool/storage';
import { indexShards, verify } from '@shardtool/writer';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';
import { type FaultyServer, faultyServer } from './faulty-server.js';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

const random = randomOf('kills of a reader');

let shards: string;
let bytes: number;
let server: FaultyServer;
let location: string;
let expected: string;

beforeAll(async () => {
  shards = await packedSmall({ samples: 128, bytes: () => 20_000 }, { maxShardSamples: 16 });
  bytes = tars().reduce((sum, tar) => sum + fs.statSync(tar).size, 0);
  server = await faultyServer(path.dirname(shards));
  location = `${server.url}/shards`;
  expected = (await run(shards)).digest;
});
afterAll(() => server.stop());
beforeEach(() => {
  server.clear();
  server.fault = () => undefined;
  server.latencyMs = 0;
});

const tars = () =>
  fs
    .readdirSync(shards)
    .filter((name) => name.endsWith('.tar'))
    .map((name) => path.join(shards, name));
const isTar = ({ url }: { readonly url: string }) => url.endsWith('.tar');
const OPTIONS = { transform: 'raw', batchSize: 8, seed: 3, workers: 1, streams: 4, blockSamples: 4 } as const;

/** An epoch: a digest of its batches, and the report of the loader. */
async function run(
  from: string,
  options: object = {},
  onBatch: (batch: Batch, n: number) => Promise<void> = async () => {},
): Promise<{ digest: string; report: LoaderReport }> {
  await using dataset = await openDataset(from);
  await using loader = dataset.loader({ ...OPTIONS, shuffleUnit: 'shard', ...options });
  const hash = createHash('sha256');
  let n = 0;
  for await (const batch of loader) {
    for (const image of batch.encoded!) hash.update(image);
    hash.update(batch.keys.join());
    await onBatch(batch, n++);
  }
  return { digest: hash.digest('hex'), report: loader.report() };
}

/** Corrupts a byte in some responses for tars, except requests for single samples of the first batch, whose block is fetched later. */
function flipSome(count: number): void {
  let n = 0;
  server.fault = (asked) => {
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(String(asked.headers.range)) ?? [];
    const isBlock = isTar(asked) && Number(to) - Number(from) > 40_000;
    return isBlock && n++ < count ? 'flipped byte' : undefined;
  };
}

test('a sample that was corrupted in transit is fetched again, and the batches equal those on disk', async () => {
  flipSome(6);
  const { digest, report } = await run(location);
  expect(digest).toBe(expected);
  expect(report.storage!.samplesAgain).toBeGreaterThan(0);
  expect(report.bad).toBe(0);
});

test('a corrupted sample is also fetched again if all samples are in memory, or if fields are requested', async () => {
  const options = { shuffleUnit: 'sample', fields: ['jpg'], image: 'jpg' };
  const local = await run(shards, options);
  flipSome(3);
  const { digest, report } = await run(location, options);
  expect(digest).toBe(local.digest);
  expect(report.storage!.samplesAgain).toBeGreaterThan(0);
});

test('a sample that was corrupted in transit in a later epoch is fetched again', async () => {
  const options = { epochsPerLoop: 3, onBad: 'skip' } as const;
  const local = await run(shards, options);
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ ...OPTIONS, shuffleUnit: 'shard', ...options });
  const hash = createHash('sha256');
  let isFlipping = false;
  for await (const batch of loader) {
    for (const image of batch.encoded!) hash.update(image);
    hash.update(batch.keys.join());
    if (batch.epoch === 1 && !isFlipping) {
      isFlipping = true;
      flipSome(6);
    }
  }
  expect(hash.digest('hex')).toBe(local.digest);
  expect(loader.report().storage!.samplesAgain).toBeGreaterThan(0);
});

test('a sample that is damaged at its source is fetched twice, and is then a bad sample', async () => {
  const copy = path.join(path.dirname(shards), 'damaged');
  fs.cpSync(shards, copy, { recursive: true });
  const file = path.join(copy, path.basename(tars()[1]!));
  const content = fs.readFileSync(file);
  content[150_000]! ^= 1;
  fs.writeFileSync(file, content);
  await expect(run(`${server.url}/damaged`)).rejects.toThrow(
    /000001.tar: sample "\S+" cannot be used: it has changed since it was packed/,
  );
  const { report } = await run(`${server.url}/damaged`, { onBad: 'skip' });
  expect(report).toMatchObject({ bad: 1, storage: { samplesAgain: 1 } });
});

test('a bad sample of the first batch is not replaced with a sample that could not be read', async () => {
  const copy = path.join(path.dirname(shards), 'unread');
  fs.cpSync(shards, copy, { recursive: true });
  const keys: string[] = [];
  await run(shards, {}, async (batch) => void keys.push(...batch.keys));
  await using dataset = await openDataset(shards);
  const image = Buffer.from((await dataset.get(keys[0]!)).fields.jpg!);
  for (const name of fs.readdirSync(copy).filter((file) => file.endsWith('.tar'))) {
    const content = fs.readFileSync(path.join(copy, name));
    const at = content.indexOf(image);
    if (at < 0) continue;
    content[at + 5]! ^= 1;
    fs.writeFileSync(path.join(copy, name), content);
  }
  // Only single samples can be read: those that the first batch needs.
  server.fault = (asked) => {
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(String(asked.headers.range)) ?? [];
    return isTar(asked) && Number(to) - Number(from) > 40_000 ? { status: 403 } : undefined;
  };
  let batches = 0;
  const counted = run(`${server.url}/unread`, { onBad: 'replace' }, async () => void batches++);
  await expect(counted).rejects.toThrow('403');
  expect(batches).toBe(0);
});

test('an index, a crop index, an overlay or dataset.json that was corrupted in transit is fetched again', async () => {
  const files = [/dataset\.json$/, /000000\.parquet$/, /000000\.crops$/, /few\.jsonl$/];
  const crops = path.join(path.dirname(shards), 'with-crops');
  fs.cpSync(shards, crops, { recursive: true });
  await indexShards([crops], { index: ['crops'] });
  await addOverlay(crops, { name: 'few', excludeWhere: 'key < "a/0002"' });
  const loaded = async () => {
    await using dataset = await openDataset(`${server.url}/with-crops`, { overlay: 'few' });
    expect(await dataset.files.crops(0)).not.toBeNull();
    return (await dataset.get(3)).key;
  };
  const key = await loaded();
  for (const file of files) {
    let wrong = 0;
    server.fault = ({ url }) => (file.test(url) && wrong++ === 0 ? 'flipped end' : undefined);
    expect(await loaded()).toBe(key);
    expect(wrong).toBeGreaterThan(1);
  }
});

test('verify rejects if it is not allowed to read, and reports no damage', async () => {
  const faults: string[] = [];
  const verified = () => verify(location, { workers: 1, onFault: ({ reason }) => faults.push(reason) });
  for (const file of ['000003.tar', '000003.parquet', 'dataset.json']) {
    server.fault = ({ url }) => (url.endsWith(file) ? { status: 403 } : undefined);
    await expect(verified()).rejects.toThrow(/access is denied/);
  }
  expect(faults).toEqual([]);
  // A missing shard is reported as damage.
  server.fault = ({ url }) => (url.endsWith('000003.tar') ? { status: 404 } : undefined);
  expect(await verified()).toMatchObject({ faults: 1 });
  expect(faults).toEqual([expect.stringContaining('there is no such file')]);
});

test('verify checks a shard again that was corrupted in transit, and reports damage at the source', async () => {
  const found = async (place: string) => {
    const faults: string[] = [];
    await verify(place, { workers: 1, onFault: ({ reason }) => faults.push(reason) });
    return faults;
  };
  let wrong = 0;
  server.fault = ({ url }) => (url.endsWith('000000.tar') && wrong++ === 0 ? 'flipped byte' : undefined);
  expect(await found(location)).toEqual([]);
  expect(wrong).toBeGreaterThan(1);
  server.fault = ({ url }) => (url.endsWith('000000.tar') ? 'flipped byte' : undefined);
  expect(await found(location)).toEqual([expect.stringContaining('has changed')]);
});

test('look-ups and raw iteration retry once, too', async () => {
  await using local = await openDataset(shards);
  await using dataset = await openDataset(location);
  let n = 0;
  server.fault = (asked) => (isTar(asked) && n++ === 0 ? 'flipped byte' : undefined);
  expect(await dataset.get(5)).toEqual(await local.get(5));
  expect(n).toBe(2);
  n = 0;
  const digestOf = async (one: typeof dataset) => {
    const hash = createHash('sha256');
    for await (const { fields } of one.samples({ checksum: true })) hash.update(fields.jpg!);
    return hash.digest('hex');
  };
  expect(await digestOf(dataset)).toBe(await digestOf(local));
});

test('a changed piece of the cache is dropped and fetched again, and the dataset is not reported as damaged', async () => {
  const cache = path.join(emptyFolder(), 'cache');
  const options = { cache, cacheSize: 2 * bytes, checksum: 'always' };
  expect((await run(location, options)).digest).toBe(expected);
  const pieces = fs.readdirSync(path.join(cache, 'pieces'));
  expect(pieces.length).toBe(tars().length);
  const piece = path.join(cache, 'pieces', pieces[0]!);
  const { mtime } = fs.statSync(piece);
  const content = fs.readFileSync(piece);
  const whole = Buffer.from(content);
  content[30_000]! ^= 1;
  fs.writeFileSync(piece, content);
  fs.utimesSync(piece, new Date(), mtime);
  const again = await run(location, options);
  expect(again.digest).toBe(expected);
  expect(again.report.storage!.samplesAgain).toBe(0);
  expect(fs.readFileSync(piece)).toEqual(whole);
});

test('a shard that is replaced in the middle of an epoch ends the loop with an error that names it', async () => {
  const copy = path.join(path.dirname(shards), 'replaced');
  fs.cpSync(shards, copy, { recursive: true });
  const files = fs.readdirSync(copy).filter((name) => name.endsWith('.tar'));
  const running = run(`${server.url}/replaced`, { readConcurrency: 1, prefetchBatches: 1 }, async (_, n) => {
    if (n > 0) return;
    for (const name of files) {
      const { size } = fs.statSync(path.join(copy, name));
      fs.writeFileSync(path.join(copy, name), Buffer.alloc(size, 7));
    }
  });
  const error: Error = await running.then(
    () => new Error('nothing was noticed'),
    (error) => error,
  );
  expect(error.message).toMatch(/\/replaced\/\d+\.tar has changed: it has been replaced since it was first read/);
  expect(error.name).toBe('FileChangedError');
});

test('the loader waits for a server that is unavailable for a while', { timeout: 120_000 }, async () => {
  const goneMs = Number(process.env.SHARDTOOL_GONE_MS ?? 500);
  let asked = 0;
  const { digest, report } = await run(location, { readConcurrency: 1, prefetchBatches: 1 }, async (_, n) => {
    if (n > 0) return;
    await server.stop();
    asked = server.asked.length;
    void sleep(goneMs).then(() => server.start());
  });
  expect(digest).toBe(expected);
  expect(server.asked.length).toBeGreaterThan(asked);
  expect(report.storage!.retries).toBeGreaterThan(0);
});

test('the loader waits for an unavailable server, even if its port looks like a message of a proxy', async () => {
  // A refused connection contains the port in its message, and 407 is also the status of a proxy that requires a password.
  const other = await faultyServer(path.dirname(shards), undefined, 40_700);
  expect(other.url).toMatch(/:407\d\d$/);
  await other.stop();
  const opening = run(`${other.url}/shards`);
  await sleep(100);
  await other.start();
  expect((await opening).digest).toBe(expected);
  await other.stop();
});

test('a cache on a disk that is too small causes more fetching, and loses no batch', async ({ skip }) => {
  const disk = emptyFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', disk], { stdio: 'pipe' });
  } catch {
    expect(process.getuid?.()).not.toBe(0);
    return skip('No small file system can be mounted here.');
  }
  try {
    const cache = path.join(disk, 'cache');
    expect((await run(location, { cache, cacheSize: 100 * bytes })).digest).toBe(expected);
    expect(CacheFolder.contents(cache).pieces).toBeGreaterThan(0);
    expect((await run(location, { cache, cacheSize: 100 * bytes })).digest).toBe(expected);
  } finally {
    execFileSync('umount', ['-l', disk]);
  }
});

const CHILD = fileURLToPath(new URL('./cached-loader-child.mjs', import.meta.url));

function startReader(cache: string, cacheSize: number, epochs = 2): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [CHILD, location, cache, String(cacheSize), String(epochs)]);
}

interface Said {
  readonly fetched: number;
  readonly digest: string;
}

async function ended(child: ChildProcessWithoutNullStreams): Promise<Said> {
  let out = '';
  let trouble = '';
  child.stdout.on('data', (text) => {
    out += text;
  });
  child.stderr.on('data', (text) => {
    trouble += text;
  });
  const code = await new Promise((resolve) => child.once('exit', resolve));
  expect(trouble).toBe('');
  expect(code).toBe(0);
  return JSON.parse(out.trim().split('\n').at(-1)!);
}

test('two processes with one cache deliver the same, and fetch shared data about once', {
  timeout: 120_000,
}, async () => {
  const cache = path.join(emptyFolder(), 'cache');
  const [a, b] = await Promise.all([0, 1].map(() => ended(startReader(cache, 2 * bytes))));
  expect(a!.digest).toBe(b!.digest);
  expect(a!.fetched + b!.fetched).toBeLessThan(1.5 * bytes);
  // The end of a tar, after its last sample, is not cached.
  const kept = CacheFolder.contents(cache);
  expect(kept.pieces).toBe(tars().length);
  expect(Math.abs(kept.bytes - bytes)).toBeLessThan(0.01 * bytes);
});

test('processes that are killed while they fill a cache leave it intact for the next one', {
  timeout: 120_000 * TIMES,
}, async () => {
  const cache = path.join(emptyFolder(), 'cache');
  const half = Math.floor(bytes / 2);
  for (let kill = 0; kill < 2 * TIMES; kill++) {
    // More epochs than it reaches before it is killed.
    const child = startReader(cache, half, 100);
    await new Promise((resolve) => child.stdout.once('data', resolve));
    await sleep(random() * 50);
    await new Promise((resolve) => child.once('exit', resolve).kill('SIGKILL'));
    expect(CacheFolder.contents(cache).bytes).toBeLessThanOrEqual(half);
  }
  expect((await run(location, { cache, cacheSize: half, checksum: 'always' })).digest).toBe(expected);
});
