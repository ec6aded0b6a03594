import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { encodeShardIndex, type ShardIndex } from '../shard-index/shard-index.js';
import { indexPathOf } from './find-shards.js';
import { findSidecars, ownerOf, packedSidecarPath, placeSidecar, sideFolder } from './sidecar-files.js';
import { earlierSidecarPath, isOfLayout, sidecarOfShard, sidecarPath, sidecarPaths } from './sidecars.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'shardtool-beside-'));
  vi.stubEnv('SHARDTOOL_SIDECARS', path.join(folder, 'side'));
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});
const at = (name: string) => path.join(folder, 'shards', name);
beforeEach(() => mkdirSync(path.join(folder, 'shards')));
afterEach(() => rmSync(path.join(folder, 'shards'), { recursive: true }));

const NONE: ShardIndex = {
  samples: 0,
  key: [],
  source: [],
  offset: new Float64Array(0),
  bytes: new Float64Array(0),
  fields: new Map(),
  width: new Int32Array(0),
  height: new Int32Array(0),
  orientation: new Uint8Array(0),
  cls: new Int32Array(0),
  columns: new Map(),
};
const OURS = encodeShardIndex(NONE);
const THEIRS = Buffer.from('PAR1 rows of img2dataset PAR1');

test('an index is next to its shard and has the name of the shard', () => {
  expect(indexPathOf('/data/train-000000.tar')).toBe('/data/train-000000.parquet');
  expect(indexPathOf('a.b.lmdb')).toBe('a.b.parquet');
  expect(indexPathOf('a/000000.lmdb/data.mdb')).toBe('a/000000.parquet');
});

test('all sidecar files of a shard are derived from its name or its path', () => {
  const files = ['000000.parquet', '000000.idx', '000000.crops', '000000.inspect'];
  expect(sidecarOfShard('000000.tar')).toEqual(files);
  expect(sidecarOfShard('000000.lmdb')).toEqual(files);
  expect(sidecarOfShard('000000.lmdb/data.mdb')).toEqual(files);
  expect(sidecarPath('wids', 'shards/000000.tar')).toBe(path.join('shards', 'shardindex.json'));
});

test('of the requested kinds, some have one file per shard, and some one file per folder', () => {
  expect(sidecarOfShard('shards/000000.tar', ['crops', 'wids', 'dali'])).toEqual(
    ['000000.crops', '000000.idx'].map((file) => path.join('shards', file)),
  );
  expect(sidecarPaths(['crops', 'wids', 'dali'])).toEqual(['shardindex.json']);
});

test("indexes for other loaders exist only for tar; shardtool's own exist for every layout", () => {
  const kinds = ['index', 'wids', 'dali', 'crops'] as const;
  expect(kinds.filter((kind) => isOfLayout(kind, 'tar'))).toEqual(kinds);
  expect(kinds.filter((kind) => isOfLayout(kind, 'lmdb'))).toEqual(['index', 'crops']);
});

test('an index without a naming conflict has the name of its shard, and is found there', async () => {
  writeFileSync(at('0.tar'), '');
  expect(await findSidecars('index', at('0.tar'))).toBeNull();
  const place = await placeSidecar('index', at('0.tar'));
  expect(place).toBe(at('0.parquet'));
  writeFileSync(place, OURS);
  expect(await ownerOf('index', place)).toBe('shardtool');
  expect(await findSidecars('index', at('0.tar'))).toBe(place);
  expect(await placeSidecar('index', at('0.tar'))).toBe(place);
});

test("a Parquet file of other software is not taken for an index, and shardtool's index gets another name", async () => {
  writeFileSync(at('0.tar'), '');
  writeFileSync(at('0.parquet'), THEIRS);
  expect(await ownerOf('index', at('0.parquet'))).toBe('other');
  expect(await findSidecars('index', at('0.tar'))).toBeNull();
  const place = await placeSidecar('index', at('0.tar'));
  expect(place).toBe(at('0.tar.shardtool'));
  writeFileSync(place, OURS);
  expect(await findSidecars('index', at('0.tar'))).toBe(place);
});

test('next to Parquet shards, sidecars get hidden names, which software that reads whole folders skips', async () => {
  writeFileSync(at('0.parquet'), '');
  const place = await placeSidecar('index', at('0.parquet'));
  expect(place).toBe(at('.0.shardtool'));
  writeFileSync(at('.0.shardtool'), THEIRS);
  expect(await placeSidecar('index', at('0.parquet'))).toBe(at('.0.parquet.shardtool'));
  expect(await placeSidecar('crops', at('0.parquet'))).toBe(at('.0.crops'));
  expect(await placeSidecar('inspection', at('0.parquet'))).toBe(at('.0.inspect'));
});

test('an index that an earlier build wrote among Parquet shards is found until it is written again', async () => {
  writeFileSync(at('0.parquet'), '');
  writeFileSync(at('0.shardtool'), OURS);
  expect(await findSidecars('index', at('0.parquet'))).toBe(at('0.shardtool'));
  writeFileSync(at('.0.shardtool'), OURS);
  expect(await findSidecars('index', at('0.parquet'))).toBe(at('.0.shardtool'));
});

test('for packed Parquet, whose shards have their own folder, sidecars are in the parent folder', async () => {
  expect(sidecarPath('index', 'data/train.parquet')).toBe('train.shardtool');
  expect(sidecarPath('crops', '/ds/.data/train.parquet')).toBe('/ds/train.crops');
  expect(sidecarPath('index', 's3://bucket/ds/data/train.parquet')).toBe('s3://bucket/ds/train.shardtool');
  expect(sidecarPath('index', '/ds/others/train.parquet')).toBe('/ds/others/train.shardtool');
  expect(earlierSidecarPath('index', '/ds/data/train.parquet')).toBe('/ds/data/train.shardtool');
  expect(earlierSidecarPath('index', '/ds/data/train.tar')).toBeNull();
  mkdirSync(at('data'));
  writeFileSync(at('data/0.parquet'), '');
  expect(await placeSidecar('inspection', at('data/0.parquet'))).toBe(at('data/.0.inspect'));
  writeFileSync(at('dataset.json'), '{}');
  expect(await placeSidecar('inspection', at('data/0.parquet'))).toBe(at('0.inspect'));
  expect(await packedSidecarPath('index', at('data/0.parquet'))).toBe(at('0.shardtool'));
  writeFileSync(at('data/0.shardtool'), OURS);
  expect(await packedSidecarPath('index', at('data/0.parquet'))).toBe(at('data/0.shardtool'));
  writeFileSync(at('0.shardtool'), OURS);
  expect(await packedSidecarPath('index', at('data/0.parquet'))).toBe(at('0.shardtool'));
});

test('an index that is older than its shard is ignored', async () => {
  writeFileSync(at('0.parquet'), OURS);
  writeFileSync(at('0.tar'), '');
  utimesSync(at('0.parquet'), 1, 1);
  expect(await findSidecars('index', at('0.tar'))).toBeNull();
});

test('if every name next to the shard is taken, the index is kept in a folder of this machine', async () => {
  writeFileSync(at('0.tar'), '');
  for (const taken of ['0.parquet', '0.tar.shardtool']) writeFileSync(at(taken), THEIRS);
  const side = path.join(sideFolder(at(''))!, '0.parquet');
  expect(await placeSidecar('index', at('0.tar'))).toBe(side);
  expect(existsSync(path.dirname(side))).toBe(true);
});

test('the folder of this machine keeps its files when it gets its new name', () => {
  const earlier = path.join(folder, 'shardtool', 'beside');
  mkdirSync(earlier, { recursive: true });
  writeFileSync(path.join(earlier, 'x'), OURS);
  vi.stubEnv('SHARDTOOL_SIDECARS', '');
  vi.stubEnv('XDG_CACHE_HOME', folder);
  try {
    const side = sideFolder(at(''))!;
    expect(path.dirname(side)).toBe(path.join(folder, 'shardtool', 'sidecars'));
    expect(existsSync(path.join(side, '..', 'x'))).toBe(true);
    expect(existsSync(earlier)).toBe(false);
  } finally {
    vi.stubEnv('SHARDTOOL_SIDECARS', path.join(folder, 'side'));
  }
});

test('the folder of this machine is used under its earlier name if it cannot be renamed', () => {
  const home = path.join(folder, 'read-only');
  const cache = path.join(home, 'shardtool');
  mkdirSync(path.join(cache, 'beside'), { recursive: true });
  // A folder cannot replace a link.
  symlinkSync('missing', path.join(cache, 'sidecars'));
  vi.stubEnv('SHARDTOOL_SIDECARS', '');
  vi.stubEnv('XDG_CACHE_HOME', home);
  try {
    expect(path.dirname(sideFolder(at(''))!)).toBe(path.join(cache, 'beside'));
  } finally {
    vi.stubEnv('SHARDTOOL_SIDECARS', path.join(folder, 'side'));
  }
});

test('the index of a remote shard is kept in a folder of this machine, for this version of the shard', async () => {
  let etag = '"1"';
  const server = http.createServer((_, response) => response.writeHead(200, { etag, 'content-length': 5 }).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const remote = `http://127.0.0.1:${(server.address() as AddressInfo).port}/d/0.tar`;
  const place = await placeSidecar('index', remote);
  expect(path.dirname(place)).toBe(sideFolder(path.posix.dirname(remote)));
  writeFileSync(place, OURS);
  expect(await findSidecars('index', remote)).toBe(place);
  etag = '"2"';
  expect(await findSidecars('index', remote)).toBeNull();
  server.closeAllConnections();
  server.close();
});

test("a file that other software also writes counts as shardtool's only if the record of the pack says so", async () => {
  writeFileSync(at('0.idx'), 'v1.2 0\n');
  expect(await ownerOf('dali', at('0.idx'))).toBe('other');
  await expect(placeSidecar('dali', at('0.tar'))).rejects.toThrow('0.idx was not written by shardtool, so it is kept');
  expect(await placeSidecar('dali', at('0.tar'), true)).toBe(at('0.idx'));
});
