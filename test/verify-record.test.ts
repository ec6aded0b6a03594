import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { pack, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { type BucketServer, useBucketServer } from './bucket-server.js';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { digestsOf, filesIn, jpeg, newFolder } from './pack-workbench.js';

let server: BucketServer;
useBucketServer((started) => {
  server = started;
});

const DAY_MS = 24 * 3600 * 1000;

function recordOf(shards: string) {
  const lines = readFileSync(path.join(shards, 'verified.jsonl'), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}

/** Moves all times of the record back. */
function age(shards: string, ms: number): void {
  const lines = recordOf(shards).map((line) => ({ ...line, time: new Date(Date.parse(line.time) - ms).toISOString() }));
  writeFileSync(path.join(shards, 'verified.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

test('verify --since skips shards that were found intact since then, and writes only its record', async () => {
  const shards = await packedPhotos();
  const before = digestsOf(shards);
  const first = await verify(shards, { since: 30 * DAY_MS });
  expect(first).toMatchObject({ shards: 6, faults: 0, record: { dueShards: 0, fault: null } });
  const second = await shardtool('verify', shards, '--since', '30d');
  expect([second.code, second.stdout]).toEqual([
    0,
    expect.stringMatching(/^No shard remains to be verified; the check of every shard is from 20/),
  ]);
  age(shards, 31 * DAY_MS);
  expect(await verify(shards, { since: 30 * DAY_MS })).toMatchObject({ shards: 6 });
  rmSync(path.join(shards, 'verified.jsonl'));
  expect(digestsOf(shards)).toEqual(before);
});

test('a check by decoding counts as a check of checksums, but not the other way round', async () => {
  const shards = await packedPhotos();
  await verify(shards, { since: DAY_MS });
  expect(await verify(shards, { since: DAY_MS, check: 'decode' })).toMatchObject({ shards: 6 });
  age(shards, 2 * DAY_MS);
  await verify(shards, { since: DAY_MS, check: 'decode' });
  expect(await verify(shards, { since: DAY_MS })).toMatchObject({ shards: 0 });
});

test('sampling a dataset eventually covers all shards, never verified ones first', async () => {
  const shards = await packedPhotos();
  const seen: string[] = [];
  for (let day = 0; day < 6; day++) {
    const { record } = await verify(shards, { sample: 0.01 });
    const newest = recordOf(shards).sort((a, b) => (a.time < b.time ? 1 : -1))[0];
    seen.push(newest.file);
    expect(record).toMatchObject({ dueShards: 5 - day, fault: null });
    age(shards, 1000);
  }
  expect(new Set(seen).size).toBe(6);
  await verify(shards, { sample: 0.01 });
  const last = recordOf(shards).sort((a, b) => (a.time < b.time ? 1 : -1))[0];
  expect(last.file).toBe(seen[0]);
});

test('a shard with a fault stays due until it is intact, also after a check that found it intact', async () => {
  const shards = await packedPhotos();
  await verify(shards, { since: 30 * DAY_MS });
  age(shards, 31 * DAY_MS);
  const file = path.join(shards, '000002.tar');
  const whole = readFileSync(file);
  const damaged = Buffer.from(whole);
  damaged[whole.length >> 1]! ^= 1;
  writeFileSync(file, damaged);
  const args = ['verify', shards, '--since', '30d'];
  expect((await shardtool(...args)).code).toBe(1);
  const again = await shardtool(...args, '--json');
  expect([again.code, JSON.parse(again.stdout.trimEnd().split('\n').at(-1)!)]).toMatchObject([
    1,
    { shards: 1, record: { dueShards: 1, oldest: null } },
  ]);
  writeFileSync(file, whole);
  expect((await shardtool(...args)).code).toBe(0);
  expect(await verify(shards, { since: 30 * DAY_MS })).toMatchObject({ shards: 0 });
});

test('an aborted call has recorded the shards that it verified, and the next one verifies the others', async () => {
  const shards = await packedPhotos();
  const stop = new AbortController();
  const onProgress = ({ shards: done }: { shards: number }) => {
    if (done === 2) stop.abort(new Error('enough'));
  };
  await expect(verify(shards, { since: DAY_MS, signal: stop.signal, onProgress })).rejects.toThrow('enough');
  await expect
    .poll(() => existsSync(path.join(shards, 'verified.jsonl')) && recordOf(shards).length)
    .toBeGreaterThan(1);
  const recorded = recordOf(shards).length;
  expect(await verify(shards, { since: DAY_MS })).toMatchObject({ shards: 6 - recorded, record: { dueShards: 0 } });
});

test('shards that are new since the last check are due, and damaged lines of the record are ignored', async () => {
  const source = emptyFolder();
  for (let i = 0; i < 4; i++) writeFileSync(path.join(source, `${i}.jpg`), jpeg(i));
  const shards = newFolder();
  await pack(source, shards, { maxShardSamples: 2 });
  await verify(shards, { since: DAY_MS });
  writeFileSync(path.join(source, '9.jpg'), jpeg(9));
  await pack(source, shards, { append: true });
  const future = { ...recordOf(shards)[0], time: '2999-01-01T00:00:00.000Z', faults: 0 };
  const text = readFileSync(path.join(shards, 'verified.jsonl'), 'utf8');
  writeFileSync(path.join(shards, 'verified.jsonl'), `${text}${JSON.stringify(future)}\n{"file":"0000`);
  expect(await verify(shards, { since: DAY_MS })).toMatchObject({ shards: 1, record: { dueShards: 0 } });
  const { shards: known } = await readManifest(shards);
  expect(recordOf(shards).map(({ file }) => file)).toEqual(known.map(({ file }) => file));
});

test('a fault that a machine with a fast clock found counts, and a later result replaces it whatever the clock', async () => {
  const shards = await packedPhotos();
  await verify(shards, { since: DAY_MS, check: 'decode' });
  const text = readFileSync(path.join(shards, 'verified.jsonl'), 'utf8');
  const future = { ...recordOf(shards)[2], check: 'checksums', time: new Date(Date.now() + DAY_MS).toISOString() };
  writeFileSync(path.join(shards, 'verified.jsonl'), `${text}${JSON.stringify({ ...future, faults: 1 })}\n`);
  expect(await verify(shards, { since: 30 * DAY_MS })).toMatchObject({ shards: 1, record: { dueShards: 0 } });
  // An intact shard with a time in the future does not count, so it is verified once more.
  expect(await verify(shards, { since: 30 * DAY_MS, check: 'decode' })).toMatchObject({ shards: 0 });
  expect(recordOf(shards).every(({ faults }) => faults === 0)).toBe(true);
});

test('the results of two processes that save at the same time are both in the record', async () => {
  const shards = newFolder();
  const source = emptyFolder();
  for (let i = 0; i < 4; i++) writeFileSync(path.join(source, `${i}.jpg`), jpeg(i));
  await pack(source, shards, { maxShardSamples: 2 });
  for (const file of filesIn(shards)) server.put(`data/set/${file}`, readFileSync(path.join(shards, file)));
  const name = 'data/set/verified.jsonl';
  const { file, crc32 } = (await readManifest(shards)).shards[1]!;
  const other = { file, crc32, check: 'decode', time: new Date().toISOString(), faults: 1 };
  let others = 0;
  server.fault = ({ method, key }) => {
    if (method === 'PUT' && key === 'set/verified.jsonl' && others++ === 0)
      server.put(name, `${JSON.stringify(other)}\n`);
    return undefined;
  };
  expect(await verify('s3://data/set', { since: DAY_MS })).toMatchObject({ shards: 2, record: { fault: null } });
  const lines = server.objects
    .get(name)!
    .bytes.toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ check }) => check)).toEqual(['checksums', 'checksums', 'decode']);
  expect(lines[2]).toEqual(other);
});

test('verify of a read-only folder keeps its record elsewhere, and says so', async () => {
  const shards = await packedPhotos();
  const side = emptyFolder();
  const before = process.env.SHARDTOOL_SIDECARS;
  process.env.SHARDTOOL_SIDECARS = side;
  // Unlike a folder without permission, a folder of this name also stops root.
  mkdirSync(path.join(shards, 'verified.jsonl', 'in-the-way'), { recursive: true });
  try {
    const { code, stdout } = await shardtool('verify', shards, '--since', '30d');
    const message = `The record of checks cannot be written next to the shards and is in ${side}`;
    expect([code, stdout]).toEqual([0, expect.stringContaining(message)]);
    expect(await verify(shards, { since: DAY_MS })).toMatchObject({ shards: 0, faults: 0 });
  } finally {
    if (before === undefined) delete process.env.SHARDTOOL_SIDECARS;
    else process.env.SHARDTOOL_SIDECARS = before;
  }
});

test('verify of shards without dataset.json, and with --fix, rejects --since and --sample', async () => {
  const shards = await packedPhotos();
  const fix = await shardtool('verify', shards, '--fix', '--since', '1d');
  expect([fix.code, fix.stderr]).toEqual([2, expect.stringContaining('remove --since and --sample')]);
  rmSync(path.join(shards, 'dataset.json'));
  rmSync(path.join(shards, 'pack.json'), { force: true });
  const { code, stderr } = await shardtool('verify', shards, '--sample', '5%');
  expect([code, stderr]).toEqual([2, expect.stringContaining('omit --sample')]);
  expect((await shardtool('verify', shards, '--sample', '0%')).code).toBe(2);
});
