import fs from 'node:fs';
import path from 'node:path';
import { CacheFolder } from '@shardtool/storage';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shardtool, shardtoolWith } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { type FaultyServer, faultyServer } from './faulty-server.js';

let server: FaultyServer;
let shards: string;
beforeAll(async () => {
  shards = await packedPhotos();
  server = await faultyServer(path.dirname(shards));
});
afterAll(() => server.stop());

test('bench says what storage gave, and a cache is listed and cleared', async () => {
  const cache = path.join(emptyFolder(), 'cache');
  const bench = async () => {
    const args = [
      'bench',
      `${server.url}/shards`,
      '--workers',
      '1',
      '--cache',
      cache,
      '--cache-size',
      '50MB',
      '--json',
    ];
    return JSON.parse((await shardtool(...args)).stdout).storage;
  };
  expect((await bench()).fetchedBytes).toBeGreaterThan(1e6);
  expect(await bench()).toMatchObject({ fetchedBytes: 0, retries: 0 });
  expect((await shardtool('cache', 'ls', cache)).stdout).toMatch(/^6 pieces, 2\.\d MB\n$/);
  expect((await shardtool('cache', 'clear', cache)).stdout).toMatch(/^removed 6 pieces/);
  expect(CacheFolder.contents(cache).pieces).toBe(0);
  fs.writeFileSync(path.join(cache, '..', 'other'), '');
  expect(await shardtool('cache', 'clear', path.dirname(cache))).toMatchObject({ code: 2 });
});

test('what only works on this machine is one sentence with the remedy', async () => {
  const { code, stderr } = await shardtool('verify', `${server.url}/shards`, '--fix');
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/Repairing needs a local folder, and http:\S+ is remote: copy it here/);
});

test('S3 is asked at the endpoint of the flag, and without credentials where it is to be', async () => {
  const s3 = await faultyServer(path.dirname(path.dirname(shards)));
  const bucket = path.basename(path.dirname(shards));
  const env = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'hidden' };
  const args = ['ls', `s3://${bucket}/shards`, '--endpoint-url', s3.url];
  expect((await shardtoolWith(env, ...args)).code).toBe(0);
  expect(s3.asked[0]!.headers.authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=key\//);
  expect(s3.asked[0]!.headers['x-amz-request-payer']).toBeUndefined();
  s3.clear();
  expect((await shardtoolWith(env, ...args, '--unsigned', '--requester-pays')).code).toBe(0);
  expect(s3.asked[0]!.headers.authorization).toBeUndefined();
  expect(s3.asked[0]!.headers['x-amz-request-payer']).toBe('requester');
  s3.fault = () => ({ status: 403, body: '<Error><Code>AccessDenied</Code></Error>' });
  const { stderr } = await shardtoolWith(env, ...args);
  expect(stderr).toContain('access is denied');
  expect(stderr).not.toContain('hidden');
  await s3.stop();
});
