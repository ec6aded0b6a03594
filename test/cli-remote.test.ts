import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { CacheFolder } from '@shardtool/storage';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { shardtoolWith, terminal } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { type FaultyServer, faultyServer } from './faulty-server.js';

let server: FaultyServer;
let shards: string;
beforeAll(async () => {
  shards = await packedPhotos();
  server = await faultyServer(path.dirname(shards));
});
afterAll(() => server.stop());

test('bench reports storage requests, and a cache can be listed and cleared', async () => {
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
  const first = await bench();
  expect(first.fetchedBytes).toBeGreaterThan(1e6);
  expect(first.waitShare).toBeGreaterThan(0);
  expect(first.waitShare).toBeLessThanOrEqual(1);
  expect(first.neededBytesPerSecond).toBeGreaterThan(0);
  expect(first.hadBytesPerSecond).toBeGreaterThan(0);
  expect(await bench()).toMatchObject({ fetchedBytes: 0, retries: 0, samplesAgain: 0 });
  expect((await shardtool('cache', 'ls', cache)).stdout).toMatch(/^6 pieces, 2\.\d MB\n$/);
  expect((await shardtool('cache', 'clear', cache)).stdout).toMatch(/^Removed 6 pieces/);
  expect(CacheFolder.contents(cache).pieces).toBe(0);
  fs.writeFileSync(path.join(cache, '..', 'other'), '');
  expect(await shardtool('cache', 'clear', path.dirname(cache))).toMatchObject({ code: 2 });
});

test('retries are one line on a terminal, updated each time, and elsewhere one warning for the first', async () => {
  const faulty = await faultyServer(path.dirname(shards));
  faulty.fault = ({ before }) => (before < 3 ? { status: 503 } : undefined);
  const { code, stdout } = await terminal(`shardtool ls ${faulty.url}/shards`);
  expect(code).toBe(0);
  const lines = stdout.split('\n').filter((line) => line.includes('retry'));
  expect(lines).toHaveLength(1);
  for (const n of [1, 2, 3]) {
    expect(lines[0]).toMatch(
      new RegExp(`\\r\\x1b\\[K${faulty.url}/shards/dataset.json: the server answers 503; retry ${n}, in \\d`),
    );
  }
  expect(stdout).toContain('6 tar shards');
  faulty.clear();
  const elsewhere = await shardtoolWith({ NODE_OPTIONS: '' }, 'ls', `${faulty.url}/shards`);
  expect(elsewhere.code).toBe(0);
  expect(elsewhere.stderr.match(/ShardtoolWarning/g)).toHaveLength(1);
  expect(elsewhere.stderr).toContain(
    `${faulty.url}/shards/dataset.json: the server answers 503. shardtool tries again.`,
  );
  await faulty.stop();
});

test('a host that refuses connections from the start is given up within seconds', async () => {
  const down = await faultyServer(path.dirname(shards));
  await down.stop();
  const { code, stderr } = await shardtoolWith({}, 'ls', `${down.url}/shards`);
  expect(code).not.toBe(0);
  const [, tries] = /the connection was refused; tried (\d+) times/.exec(stderr)!;
  expect(Number(tries)).toBeGreaterThan(2);
  // The retries for a host that has answered before would take half a minute.
  expect(Number(tries)).toBeLessThan(10);
  expect(stderr).toContain('the connection was refused. shardtool tries again.');
});

test('plan predicts whether a run will wait for storage', async () => {
  const plan = async (...args: string[]) => await shardtool('plan', shards, '--step-ms', '100', ...args);
  // 60 photos of some 45 KB are one batch of 64: 27 MB/s.
  const slow = JSON.parse(
    (await plan('--bandwidth', '13MB', '--streams', '2', '--shuffle-buffer-size', '10', '--json')).stdout,
  ).storage;
  expect(slow.first.bytesPerSecond).toBeCloseTo(slow.later.bytesPerSecond);
  expect(slow.first.waitShare).toBeGreaterThan(0.4);
  const { code, stdout } = await plan('--bandwidth', '1GB', '--cache-size', '10MB');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /storage: each of 1 machine with 1.0 GB\/s and a cache of 10 MB: the first epoch fetches 2\.\d MB, needs \d+ MB\/s and does not wait; a later one fetches 0 B/,
  );
  expect((await shardtool('plan', shards, '--bandwidth', '1GB')).stderr).toMatch(
    /needs --step-ms, the duration of a step/,
  );
  expect((await plan('--cache-size', '1GB')).stderr).toMatch(/need --bandwidth/);
});

test('a command that needs a local folder rejects a URL with a remedy', async () => {
  const { code, stderr } = await shardtool('verify', `${server.url}/shards`, '--fix');
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/Repairing needs a local folder, and http:\S+ is remote: copy it here/);
});

test.each(['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'AWS_EC2_METADATA_SERVICE_ENDPOINT'])(
  'if a credentials endpoint (%s) does not respond, the command fails with a remedy',
  async (variable) => {
    const silent = net.createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const env = {
      [variable]: `http://127.0.0.1:${(silent.address() as net.AddressInfo).port}`,
      ...{ AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_PROFILE: '' },
      ...{ AWS_SHARED_CREDENTIALS_FILE: '/nowhere', AWS_CONFIG_FILE: '/nowhere' },
    };
    const { code, stderr } = await shardtoolWith(env, 'ls', 's3://bucket/shards');
    expect(code).toBe(2);
    expect(stderr).toContain(
      'shardtool: Found no credentials for s3://bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE. If the bucket is public, set --unsigned.\n',
    );
    silent.close();
  },
);

test('S3 is accessed at the endpoint of the flag, and without credentials if requested', async () => {
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
  s3.fault = () => ({ status: 403, body: 'no' });
  expect((await shardtoolWith(env, ...args)).stderr).toContain('if it is public (403).');
  await s3.stop();
});
