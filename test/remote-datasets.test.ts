import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { deferred } from '@shardtool/base';
import { type Batch, type Dataset, openDataset } from '@shardtool/reader';
import { verify } from '@shardtool/writer';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos, packedSmall } from './datasets.js';
import { type FaultyServer, faultyServer } from './faulty-server.js';
import { rclone, S3_KEYS, s3Server } from './s3-server.js';

let shards: string;
let root: string;
let server: FaultyServer;
/** The batches of an epoch from disk. */
let expected: string[];

beforeAll(async () => {
  shards = await packedPhotos();
  root = path.dirname(shards);
  server = await faultyServer(root);
  fs.mkdirSync(path.join(root, 'foreign'));
  for (const tar of tars()) fs.copyFileSync(path.join(shards, tar), path.join(root, 'foreign', tar));
  process.env.SHARDTOOL_SIDECARS = path.join(emptyFolder(), 'beside');
  await using local = await openDataset(shards);
  expected = await epoch(local);
});
afterAll(async () => {
  await server.stop();
  delete process.env.SHARDTOOL_SIDECARS;
});
beforeEach(() => {
  server.clear();
  server.fault = () => undefined;
});

const tars = () => fs.readdirSync(shards).filter((name) => name.endsWith('.tar'));

const OPTIONS = {
  transform: 'train224',
  batchSize: 16,
  seed: 7,
  workers: 1,
  streams: 4,
  blockSamples: 5,
} as const;

/** The batches of an epoch: keys, labels and pixels. */
async function epoch(dataset: Dataset, options: object = {}): Promise<string[]> {
  const loader = dataset.loader({ ...OPTIONS, ...options });
  const digests: string[] = [];
  for await (const batch of loader) digests.push(digestOf(batch));
  await loader.close();
  return digests;
}

function digestOf(batch: Batch): string {
  const images = batch.images as Uint8Array;
  return createHash('sha256')
    .update(images)
    .update(JSON.stringify([batch.keys, [...batch.labels]]))
    .digest('hex');
}

test('a dataset over HTTP gives the same batches as on disk, even if requests fail', async () => {
  const local = await openDataset(shards);
  const remote = await openDataset(`${server.url}/shards`);
  expect(remote.identity).toBe(local.identity);
  expect(await epoch(remote)).toEqual(expected);
  await remote.close();
  const rare = ['reset', { status: 503 }, 'cut', 'wrong range'] as const;
  let n = 0;
  server.fault = ({ before }) => (before === 0 && n++ % 5 === 0 ? rare[((n / 5) % rare.length) | 0] : undefined);
  const troubled = await openDataset(`${server.url}/shards/`);
  expect(await epoch(troubled)).toEqual(expected);
  await troubled.close();
  await local.close();
});

test('the first batch of a dataset that fits the shuffle buffer does not wait for all of it', async () => {
  // 16 MiB: more than one request.
  const many = await packedSmall({ samples: 80, bytes: () => 200 << 10 });
  await using local = await openDataset(many);
  const options = { batchSize: 8, streams: 4, blockSamples: 20, prefetchBatches: 1 };
  const whole = await epoch(local, options);
  const other = await faultyServer(many);
  const rest = deferred();
  try {
    // Requests of more than one sample fetch all other samples.
    other.fault = ({ url, headers }) => {
      const [from, to] = (headers.range ?? '').replace('bytes=', '').split('-');
      return url.endsWith('.tar') && Number(to) - Number(from) > 300 << 10
        ? rest.promise.then(() => undefined)
        : undefined;
    };
    await using dataset = await openDataset(other.url);
    await using loader = dataset.loader({ ...OPTIONS, ...options });
    const digests: string[] = [];
    for await (const batch of loader) {
      digests.push(digestOf(batch));
      rest.resolve();
    }
    expect(digests).toEqual(whole);
  } finally {
    rest.resolve();
    await other.stop();
  }
});

test('a loop that ends before all of a small remote dataset is read leaves the rest to the next loop', async () => {
  const many = await packedSmall({ samples: 80, bytes: () => 200 << 10 });
  const options = { ...OPTIONS, batchSize: 8, streams: 4, blockSamples: 20, prefetchBatches: 1 };
  await using local = await openDataset(many);
  const loader = local.loader(options);
  const first: string[] = [];
  let state: unknown;
  for await (const batch of loader) if (first.push(digestOf(batch)) === 9) state = loader.state();
  const second: string[] = [];
  for await (const batch of loader) second.push(digestOf(batch));
  const other = await faultyServer(many);
  try {
    await using dataset = await openDataset(other.url);
    await using resumed = dataset.loader({ ...options, state });
    const found: string[] = [];
    for (let loop = 0; loop < 2; loop++) for await (const batch of resumed) found.push(digestOf(batch));
    expect(found).toEqual([first.at(-1), ...second]);
  } finally {
    await other.stop();
  }
});

test('a state that was taken on disk resumes over HTTP', async () => {
  const local = await openDataset(shards);
  const loader = local.loader(OPTIONS);
  for await (const batch of loader) {
    expect(digestOf(batch)).toBe(expected[0]);
    break;
  }
  const state = JSON.parse(JSON.stringify(loader.state()));
  await local.close();
  const remote = await openDataset(`${server.url}/shards`);
  expect(await epoch(remote, { state })).toEqual(expected.slice(1));
  await remote.close();
});

test('samples, look-ups and statistics equal those on disk', async () => {
  const local = await openDataset(shards);
  const remote = await openDataset(`${server.url}/shards`);
  const [a, b] = [await local.get('cat/cat_001'), await remote.get('cat/cat_001')];
  expect(b).toEqual(a);
  const keys = async (dataset: Dataset) => {
    const found: string[] = [];
    for await (const { key } of dataset.samples({ checksum: true })) found.push(key);
    return found;
  };
  expect(await keys(remote)).toEqual(await keys(local));
  await Promise.all([local.close(), remote.close()]);
});

test('the commands that read accept a URL', { timeout: 120_000 }, async () => {
  const location = `${server.url}/shards`;
  for (const args of [['ls', '--samples'], ['stats']]) {
    const [command, ...rest] = args;
    const there = await shardtool(command!, location, ...rest);
    const here = await shardtool(command!, shards, ...rest);
    expect(there).toMatchObject({ code: 0 });
    expect(there.stdout.replaceAll(location, shards)).toBe(here.stdout);
  }
  const out = emptyFolder();
  expect((await shardtool('unpack', location, path.join(out, 'photos'))).code).toBe(0);
  expect(fs.readdirSync(path.join(out, 'photos')).length).toBe(6);
  expect((await shardtool('convert', location, path.join(out, 'lmdb'), '--format', 'lmdb')).code).toBe(0);
  const none = await shardtool('ls', `${server.url}/none`);
  expect(none.code).not.toBe(0);
  expect(none.stderr).toContain(`${server.url}/none has no dataset.json`);
});

test('the first batch requests its own samples and not whole blocks, and all batches equal those on disk', async () => {
  const many = await packedSmall({ samples: 512, bytes: () => 20_000 }, { maxShardSamples: 32 });
  const ownServer = await faultyServer(path.dirname(many));
  const transform = [{ name: 'centerCrop', size: 8 }] as const;
  const options = { ...OPTIONS, transform, streams: 32, blockSamples: 16, shuffleUnit: 'shard' } as const;
  const local = await openDataset(many);
  const whole = await epoch(local, options);
  await local.close();
  const remote = await openDataset(`${ownServer.url}/shards`);
  ownServer.clear();
  ownServer.latencyMs = 20;
  const loader = remote.loader(options);
  const digests: string[] = [];
  for await (const batch of loader) {
    digests.push(digestOf(batch));
  }
  expect(digests).toEqual(whole);
  // One sample from each of 32 blocks gives two batches; all other reads come later.
  const lengths = ownServer.asked
    .filter(({ url }) => url.endsWith('.tar'))
    .map(({ headers }) => /^bytes=(\d+)-(\d+)$/.exec(headers.range!)!)
    .map(([, first, last]) => Number(last) + 1 - Number(first));
  expect(Math.max(...lengths.slice(0, 32))).toBeLessThan(25_000);
  expect(Math.max(...lengths)).toBeGreaterThan(150_000);
  expect(ownServer.most).toBeGreaterThan(4);
  await loader.close();
  await remote.close();
  await ownServer.stop();
});

test('remote crop indexes are used only on request, and give the same pixels', async () => {
  const indexed = await packedPhotos({ index: ['crops'] });
  const ownServer = await faultyServer(path.dirname(indexed));
  await using local = await openDataset(indexed);
  const decoded = await epoch(local, { cropIndex: false });
  for (const cropIndex of [undefined, true]) {
    await using remote = await openDataset(`${ownServer.url}/shards`);
    await using loader = remote.loader({ ...OPTIONS, ...(cropIndex !== undefined && { cropIndex }) });
    const digests: string[] = [];
    ownServer.clear();
    for await (const batch of loader) digests.push(digestOf(batch));
    expect(digests).toEqual(decoded);
    expect((await loader.info()).cropIndex.used).toBe(cropIndex === true);
    expect(ownServer.asked.some(({ url }) => url.endsWith('.crops'))).toBe(cropIndex === true);
  }
  // An invalid crop index only costs time.
  for (const name of fs.readdirSync(indexed).filter((name) => name.endsWith('.crops'))) {
    fs.writeFileSync(path.join(indexed, name), 'nothing of the kind');
  }
  await using without = await openDataset(`${ownServer.url}/shards`);
  expect(await epoch(without, { cropIndex: true })).toEqual(decoded);
  await ownServer.stop();
});

test('verify finds a damaged sample over HTTP', async () => {
  expect(await verify(`${server.url}/shards`, { workers: 1 })).toMatchObject({ samples: 60, faults: 0 });
  const damaged = path.join(root, 'damaged');
  fs.cpSync(shards, damaged, { recursive: true });
  const file = path.join(damaged, fs.readdirSync(damaged).find((name) => name.endsWith('.tar'))!);
  const bytes = fs.readFileSync(file);
  bytes[3000]! ^= 1;
  fs.writeFileSync(file, bytes);
  expect((await verify(`${server.url}/damaged`, { workers: 1 })).faults).toBeGreaterThan(0);
});

test('foreign tars in a brace pattern are scanned once, and not again when they are reopened', async () => {
  const bytes = tars().reduce((sum, tar) => sum + fs.statSync(path.join(root, 'foreign', tar)).size, 0);
  const location = `${server.url}/foreign/{000000..${tars().at(-1)!.slice(0, 6)}}.tar`;
  const dataset = await openDataset(location);
  expect(dataset.size).toBe(60);
  // The first 64 KiB of a tar are requested to detect its format, and again for the scan.
  expect(server.sent).toBeLessThan(bytes + tars().length * (70 << 10));
  await dataset.close();
  server.clear();
  const again = await openDataset(location);
  expect(again.size).toBe(60);
  expect(server.sent).toBeLessThan(tars().length * (70 << 10));
  expect((await again.get(3)).fields.jpg!.length).toBeGreaterThan(1000);
  await again.close();
});

describe.skipIf(rclone === null)('in a bucket', () => {
  let s3: Awaited<ReturnType<typeof s3Server>>;
  const before = { ...process.env };
  beforeAll(async () => {
    s3 = await s3Server(path.dirname(root));
    Object.assign(process.env, S3_KEYS, { AWS_ENDPOINT_URL: s3.endpoint });
  });
  afterAll(async () => {
    process.env = before;
    await s3?.stop();
  });

  test('a dataset gives the same batches as on disk, and a folder of tars is listed', async () => {
    const remote = await openDataset(`s3://${path.basename(root)}/shards`);
    expect(await epoch(remote)).toEqual(expected);
    await remote.close();
    const foreign = await openDataset(`s3://${path.basename(root)}/foreign/`);
    expect(foreign.size).toBe(60);
    const keys = async (dataset: Dataset) => {
      const found: string[] = [];
      for await (const { key } of dataset.samples()) found.push(key);
      return found;
    };
    const expectedKeys = await keys(foreign);
    await foreign.close();
    const last = tars().at(-1)!.slice(0, 6);
    await using braces = await openDataset(`s3://${path.basename(root)}/foreign/{000000..${last}}.tar`);
    expect(await keys(braces)).toEqual(expectedKeys);
    await using list = await openDataset(tars().map((tar) => `s3://${path.basename(root)}/foreign/${tar}`));
    expect(await keys(list)).toEqual(expectedKeys);
  });
});
