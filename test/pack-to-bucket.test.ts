import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { inPython, inTypeScript, messageIn, onCommandLine } from '@shardtool/base';
import { readManifest } from '@shardtool/format';
import {
  collectGarbage,
  commitParts,
  compactDataset,
  convert,
  OutputLockedError,
  type PackOptions,
  pack,
  verify,
} from '@shardtool/writer';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type BucketServer, bucketServer } from './bucket-server.js';
import { emptyFolder, smallImages } from './datasets.js';
import { startPack } from './pack-processes.js';
import { digestsOf, filesIn, JPEG, jpeg, newFolder, tree } from './pack-workbench.js';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

const random = randomOf('kills of a pack to a bucket');

const before = { ...process.env };
let server: BucketServer;
let source: string;
/** Folder of shards that wait for their upload. */
let staging: string;

beforeAll(async () => {
  server = await bucketServer();
  source = await smallImages({ samples: 42, classes: 3, bytes: (sample) => 2000 + sample * 100 });
});
afterAll(async () => {
  process.env = before;
  await server.stop();
});
beforeEach(() => {
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: 'someone',
    AWS_SECRET_ACCESS_KEY: 'very-secret',
    AWS_ENDPOINT_URL: server.endpoint,
  });
  server.objects.clear();
  server.uploads.clear();
  server.asked.length = 0;
  Object.assign(server, { pageSize: 1000, latencyMs: 0, fault: () => undefined });
  staging = emptyFolder();
});

const OPTIONS: PackOptions = { maxShardSamples: 7 };
const OUTPUT = 's3://out/shards';

const packTo = (options: PackOptions = {}, output = OUTPUT) =>
  pack(source, output, { ...OPTIONS, workers: 1, staging, ...options });

/** The objects in the bucket, like files of a folder: sha256 by name. */
function inBucket(): Record<string, string> {
  const files = Object.fromEntries(
    server.names('out').map((name) => [name.slice('shards/'.length), server.objects.get(`out/${name}`)!.bytes]),
  );
  return digestsOf(tree(files));
}

/** The result of a pack to a folder, by its options: created once, with one thread, which changes no byte. */
const made = new Map<string, Promise<Record<string, string>>>();

function inFolder(options: PackOptions = {}): Promise<Record<string, string>> {
  const name = JSON.stringify(options);
  const digests = made.get(name) ?? digestsOfPack(options);
  made.set(name, digests);
  return digests;
}

async function digestsOfPack(options: PackOptions): Promise<Record<string, string>> {
  const output = newFolder();
  await pack(source, output, { ...OPTIONS, ...options, workers: 1 });
  return digestsOf(output);
}

async function failure(work: Promise<unknown>): Promise<Error & { path?: string }> {
  return work.then(
    () => new Error('it went well'),
    (error) => error,
  );
}

const kinds: [string, PackOptions, number][] = [
  ['tars with all indexes', { index: ['wids', 'dali', 'crops'] }, 2],
  ['LMDB', { format: 'lmdb' }, 1],
  ['msgpack, duplicates skipped', { format: 'msgpack', dedupe: true }, 1],
];
test.each(kinds)('a bucket gets the same bytes as a folder: %s', async (_, options, workers) => {
  const report = await packTo({ ...options, workers });
  expect(report).toMatchObject({ samples: 42, isCommitted: true, keptShards: 0 });
  expect(inBucket()).toEqual(await inFolder(options));
  expect(readdirSync(staging)).toEqual([]);
  server.asked.length = 0;
  expect(await packTo(options)).toMatchObject({ wasCommitted: true, samples: 42 });
  expect([...new Set(server.asked.map(({ method }) => method))]).toEqual(['GET']);
});

test('the plan is uploaded first, a shard before its record, and dataset.json last', async () => {
  await packTo();
  const puts = server.asked.filter(({ method }) => method === 'PUT').map(({ key }) => key.slice('shards/'.length));
  expect(puts.slice(0, 2)).toEqual(['pack.state/plan', 'pack.json']);
  expect(puts.at(-1)).toBe('dataset.json');
  for (let shard = 0; shard < 6; shard++) {
    const [file, index, note] = ['.tar', '.parquet', '.json'].map((ending) => puts.indexOf(`00000${shard}${ending}`));
    expect(Math.max(file!, index!)).toBeLessThan(puts.indexOf(`pack.state/00000${shard}.json`));
    expect(note).toBe(-1);
  }
  expect(server.asked.find(({ method, key }) => method === 'PUT' && key.endsWith('plan'))!.headers).toMatchObject({
    'if-none-match': '*',
  });
});

test('long shards are uploaded in parts, and their temporary folder never holds more than a few', async () => {
  const large = tree(Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`${i}.jpg`, longImage(i)])));
  let most = 0;
  server.fault = () => {
    most = Math.max(most, blocksIn(staging));
    return undefined;
  };
  await pack(large, OUTPUT, { staging, workers: 1, maxShardSamples: 1 });
  expect(server.asked.filter(({ query }) => query.has('partNumber')).length).toBe(10);
  expect(server.uploads.size).toBe(0);
  expect(most).toBeGreaterThan(LONG / 2);
  expect(most).toBeLessThan(4.5 * LONG);
  expect(server.objects.get('out/shards/000003.tar')!.bytes.length).toBeGreaterThan(LONG);
});

/** Length of a file that needs several upload parts. */
const LONG = (16 << 20) + 1;

/** A file of this length; it starts with the image. */
function longImage(i: number): Uint8Array {
  return Buffer.concat([jpeg(i), Buffer.alloc(LONG - JPEG.length, i + 1)]);
}

/** Disk usage of all files below a folder, in bytes. */
function blocksIn(folder: string): number {
  let sum = 0;
  for (const file of filesBelow(folder)) sum += 512 * (lstatSync(file, { throwIfNoEntry: false })?.blocks ?? 0);
  return sum;
}

function filesBelow(folder: string): string[] {
  try {
    return filesIn(folder).map((file) => path.join(folder, file));
  } catch {
    // A file was removed in the meantime.
    return [];
  }
}

test('a pack that is killed repeatedly, at any moment, resumes to the same bytes with the shards that exist', {
  timeout: 120_000 + TIMES * 20_000,
}, async () => {
  const many = { maxShardSamples: 5 };
  const expected = await inFolder(many);
  const options = { ...many, workers: 1, staging };
  server.latencyMs = 5;
  for (let round = 0; round < TIMES; round++) {
    server.objects.clear();
    // Number of requests after which the process is killed.
    const moments = [3, 14, 22].map((requests) => requests + Math.floor(random() * 6));
    // Two of the three are killed, unless there are more rounds.
    if (TIMES === 1) moments.splice(Math.floor(random() * 3), 1);
    for (const moment of moments) {
      const child = startPack(source, OUTPUT, options);
      let requests = 0;
      server.fault = () => {
        if (++requests === moment) child.process.kill('SIGKILL');
        return undefined;
      };
      expect((await child.ended).code).toBeNull();
    }
    server.fault = () => undefined;
    const finished = server.names('out').filter((name) => /pack\.state\/.*\.json$/.test(name)).length;
    expect(finished).toBeGreaterThan(0);
    expect((await packTo(many)).keptShards).toBe(finished);
    expect(inBucket()).toEqual(expected);
    expect(readdirSync(staging)).toEqual([]);
  }
});

/** Ends a pack when it writes its `count`-th record. */
async function interrupted(count: number, options: PackOptions = {}): Promise<void> {
  const stop = new AbortController();
  let notes = 0;
  server.fault = ({ method, key }) => {
    if (method === 'PUT' && /pack\.state\/0.*json$/.test(key) && ++notes === count) stop.abort();
    return undefined;
  };
  await failure(packTo({ ...options, workers: 1, signal: stop.signal }));
  server.fault = () => undefined;
}

test('a pack that ended between its plan and its record writes the record when it resumes', async () => {
  server.fault = ({ method, key }) =>
    method === 'PUT' && key.endsWith('pack.json') ? { status: 403, code: 'AccessDenied' } : undefined;
  await failure(packTo());
  server.fault = () => undefined;
  expect(server.names('out')).toEqual(['shards/pack.state/plan']);
  await packTo();
  expect(inBucket()).toEqual(await inFolder());
});

test('a shard that was replaced or removed is written again', async () => {
  await interrupted(5);
  const finished = server.names('out').filter((name) => /pack\.state\/0.*\.json$/.test(name));
  expect(finished.length).toBeGreaterThanOrEqual(4);
  const { bytes } = server.objects.get('out/shards/000000.tar')!;
  server.put('out/shards/000000.tar', Buffer.from(bytes).fill(1));
  server.objects.delete('out/shards/000001.parquet');
  expect((await packTo()).keptShards).toBe(finished.length - 2);
  expect(inBucket()).toEqual(await inFolder());
});

test('with recheck the existing shards are checksummed again', async () => {
  await interrupted(4);
  const stored = server.objects.get('out/shards/000000.tar')!;
  // Damage that the store itself does not detect.
  server.objects.set('out/shards/000000.tar', { ...stored, bytes: Buffer.from(stored.bytes).fill(7, 600, 700) });
  const finished = server.names('out').filter((name) => /pack\.state\/0.*\.json$/.test(name)).length;
  expect((await packTo({ recheck: true })).keptShards).toBe(finished - 1);
  expect(inBucket()).toEqual(await inFolder());
});

test('parts pack concurrently without a lock, and the last one commits', async () => {
  const expected = await inFolder();
  server.latencyMs = 2;
  const reports = await Promise.all([0, 1, 2].map((index) => packTo({ part: { index, of: 3 }, workers: 1 })));
  expect(reports.reduce((sum, { shards }) => sum + shards, 0)).toBe(6);
  expect(inBucket()).toEqual(expected);
  expect(await packTo({ part: { index: 1, of: 3 } })).toMatchObject({ isCommitted: true });
});

test('parts that ended without a commit are committed manually, if none is missing', async () => {
  const expected = await inFolder();
  expect(await packTo({ part: { index: 0, of: 2 } })).toMatchObject({ isCommitted: false, pendingShards: 3 });
  expect(await failure(commitParts(OUTPUT))).toMatchObject({
    name: 'PartsMissingError',
    message: expect.stringContaining('3 of the 6 shards of s3://out/shards are not finished (000001, 000003'),
  });
  server.fault = ({ method, key }) =>
    method === 'PUT' && key.endsWith('dataset.json') ? { status: 403, code: 'AccessDenied' } : undefined;
  expect((await failure(packTo({ part: { index: 1, of: 2 } }))).message).toMatch(
    /^s3:\/\/out\/shards\/dataset\.json cannot be written: access is denied/,
  );
  server.fault = () => undefined;
  expect(await commitParts(OUTPUT)).toMatchObject({ samples: 42, shards: 6, wasCommitted: false });
  expect(inBucket()).toEqual(expected);
  expect(await commitParts(OUTPUT)).toMatchObject({ wasCommitted: true });
});

test('of two packs that start at the same time with different plans, one fails', async () => {
  server.latencyMs = 5;
  const [one, other] = await Promise.allSettled([
    packTo({ part: { index: 0, of: 2 } }),
    packTo({ part: { index: 1, of: 2 }, seed: 5 }),
  ]);
  const refused = [one!, other!].filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
  expect(refused).toHaveLength(1);
  expect(refused[0]!.reason).toMatchObject({ name: 'PlanChangedError', path: OUTPUT });
});

test('files that shardtool did not write are never replaced, and its own files only on request', async () => {
  server.put('out/shards/notes.txt', 'mine');
  expect(await failure(packTo())).toMatchObject({ name: 'OutputNotEmptyError', path: OUTPUT });
  server.objects.delete('out/shards/notes.txt');
  server.put('out/shards-of-another/000000.tar', 'theirs');
  await packTo();
  server.put('out/shards/../secret', 'theirs');
  expect((await failure(packTo({ seed: 1 }))).message).toBe(
    'The output folder s3://out/shards already contains a dataset; pack to another folder, or replace the output of the earlier ' +
      'pack with "overwrite".',
  );
  server.put('out/shards/mine/notes.txt', 'mine');
  await packTo({ seed: 1, overwrite: true, maxShardSamples: 30 });
  const names = server.names('out').filter((name) => /notes|secret|another/.test(name));
  expect(names).toEqual(['shards-of-another/000000.tar', 'shards/../secret', 'shards/mine/notes.txt']);
  for (const name of names) server.objects.delete(`out/${name}`);
  expect(inBucket()).toEqual(await inFolder({ seed: 1, maxShardSamples: 30 }));
  // An unfinished upload resumes or restarts.
  server.objects.clear();
  await interrupted(3);
  const changed = await failure(packTo({ seed: 2 }));
  for (const spelling of [inTypeScript, inPython, onCommandLine]) {
    expect(messageIn(changed, spelling)).toMatch(/The output folder s3:\/\/out\/shards contains an unfinished pack/);
  }
  await packTo({ seed: 2, restart: true });
  expect(inBucket()).toEqual(await inFolder({ seed: 2 }));
});

test('a dataset.json that appears in the meantime is kept', async () => {
  server.fault = ({ method, key }) => {
    if (method === 'PUT' && key.endsWith('000005.tar')) server.put('out/shards/dataset.json', '{}');
    return undefined;
  };
  expect(await failure(packTo())).toMatchObject({
    name: 'OutputNotEmptyError',
    message: expect.stringContaining('Another process wrote a dataset to s3://out/shards'),
  });
  expect(server.objects.get('out/shards/dataset.json')!.bytes.toString()).toBe('{}');
});

test('lost responses, connection resets and busy servers change nothing', async () => {
  let asked = 0;
  server.fault = () => {
    asked++;
    if (asked % 7 === 0) return 'lost';
    if (asked % 11 === 0) return { status: 503, code: 'SlowDown' };
    return asked % 13 === 0 ? 'reset' : undefined;
  };
  await packTo();
  expect(inBucket()).toEqual(await inFolder());
});

test('missing permissions are reported in one sentence without a secret, and no upload remains unfinished', async () => {
  const large = tree({ '1.jpg': longImage(1) });
  server.fault = ({ query }) => (query.get('partNumber') === '2' ? { status: 403, code: 'AccessDenied' } : undefined);
  const refused = await failure(pack(large, OUTPUT, { staging, workers: 1 }));
  expect(refused.message).toMatch(/^s3:\/\/out\/shards\/000000\.tar cannot be written: access is denied/);
  expect(server.uploads.size).toBe(0);
  expect(readdirSync(staging)).toEqual([]);
  server.fault = ({ method, key }) =>
    method === 'GET' && key === '' ? { status: 403, code: 'AccessDenied' } : undefined;
  const unlisted = await failure(packTo());
  expect(unlisted.message).toMatch(/^s3:\/\/out\/shards cannot be listed: access is denied/);
  for (const { message, stack, cause } of [refused, unlisted]) {
    expect(`${message}${stack}${String(cause)}`).not.toMatch(/very-secret|Signature=/);
  }
  expect((await failure(packTo({}, 'https://host/shards?token=very-secret'))).message).toBe(
    'https://host/shards cannot be written: write to a folder, to s3:// or to gs://.',
  );
});

test('a conversion to a bucket gives the same bytes as one to a folder, and resumes after it was killed', async () => {
  const [tars, expected] = [newFolder(), newFolder()];
  await pack(source, tars, { ...OPTIONS, workers: 1 });
  await convert(tars, expected, { format: 'msgpack', workers: 1 });
  const stop = new AbortController();
  server.fault = ({ method, key }) => {
    if (method === 'PUT' && key.endsWith('pack.state/000004.json')) stop.abort();
    return undefined;
  };
  const options = { format: 'msgpack', workers: 1, staging } as const;
  await failure(convert(tars, OUTPUT, { ...options, signal: stop.signal }));
  expect(server.objects.has('out/shards/000002.msgpack')).toBe(true);
  server.fault = () => undefined;
  server.asked.length = 0;
  expect(await convert(tars, OUTPUT, options)).toMatchObject({ samples: 42, wasCommitted: false });
  expect(inBucket()).toEqual(digestsOf(expected));
  expect(server.asked.filter(({ method, key }) => method === 'PUT' && key.endsWith('000001.msgpack'))).toEqual([]);
  expect(await convert(tars, OUTPUT, options)).toMatchObject({ wasCommitted: true });
  expect((await failure(convert(OUTPUT, `${OUTPUT}/`, {}))).message).toMatch(/is also the folder of the input/);
});

test('a pack from one bucket to another, and the conversion of a stream to a bucket, give the same bytes', async () => {
  for (const file of filesIn(source))
    server.put(`raw/${file}`, readFileSync(path.join(source, file)), statSync(path.join(source, file)).mtimeMs);
  await pack('s3://raw', OUTPUT, { ...OPTIONS, workers: 1, staging });
  const { 'pack.json': _, ...made } = inBucket();
  expect(await inFolder()).toMatchObject(made);
  const tar = server.objects.get('out/shards/000000.tar')!.bytes;
  const folder = newFolder();
  mkdirSync(folder);
  const cut = { maxShardSamples: 4, workers: 1 };
  const { Readable } = await import('node:stream');
  await convert(Readable.from([tar]), folder, { ...cut, overwrite: true });
  server.objects.clear();
  await convert(Readable.from([tar]), OUTPUT, { ...cut, staging });
  expect(inBucket()).toEqual(digestsOf(folder));
  expect(existsSync(staging)).toBe(true);
  expect(readdirSync(staging)).toEqual([]);
});

test('of two commands that change a bucket from one machine, the second one is refused, and leaves the files of the first one alone', async () => {
  await packTo();
  const more = tree({ 'new.jpg': JPEG });
  const others: Promise<unknown>[] = [];
  server.fault = ({ method }) => {
    if (method !== 'PUT' || others.length > 0) return undefined;
    others.push(failure(packTo({ append: true })), failure(compactDataset(OUTPUT, { staging, maxShardSamples: 20 })));
    // The first command has not finished yet, and continues when these are done.
    others.push(collectGarbage(OUTPUT, { keep: 1, dryRun: true, staging }));
    return { status: 503, code: 'SlowDown' };
  };
  await pack(more, OUTPUT, { append: true, workers: 1, staging });
  const [append, compaction, dry] = await Promise.all(others);
  for (const error of [append, compaction]) {
    expect(error).toBeInstanceOf(OutputLockedError);
    expect((error as Error).message).toContain(`remove ${staging}`);
  }
  expect(dry).toMatchObject({ removedVersions: [] });
  expect((await verify(OUTPUT)).faults).toBe(0);
  expect((await readManifest(OUTPUT)).samples).toBe(43);
  expect(readdirSync(staging)).toEqual([]);
});

test('files that another program removes from the staging folder are not removed from the bucket', async () => {
  await packTo();
  const names = server.names('out');
  server.fault = ({ method }) => {
    if (method !== 'PUT') return undefined;
    const [folder] = readdirSync(staging).filter((name) => !name.endsWith('.lock'));
    rmSync(path.join(staging, folder!, '000001.tar'), { force: true });
    return undefined;
  };
  const error = await failure(compactDataset(OUTPUT, { staging, maxShardSamples: 20 }));
  expect(messageIn(error, onCommandLine)).toContain(`lost files, so nothing was removed from ${OUTPUT}`);
  expect(server.names('out')).toEqual(expect.arrayContaining(names));
});

test('a dry run of an append to a bucket changes no object, and leaves no folder on this machine', async () => {
  await packTo();
  const more = tree({ 'new/1.jpg': jpeg(1), 'new/2.jpg': jpeg(2) });
  const there = inBucket();
  server.asked.length = 0;
  const dry = await pack(more, OUTPUT, { append: true, workers: 1, staging, dryRun: true });
  expect(dry).toMatchObject({ samples: 2, shards: 1, changes: { gone: 42 }, isCommitted: false });
  expect(inBucket()).toEqual(there);
  expect(server.asked.filter(({ method }) => !['GET', 'HEAD'].includes(method))).toEqual([]);
  expect(readdirSync(staging)).toEqual([]);
});
