import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest';
import { type BucketServer, bucketServer } from './bucket-server.js';
import { bin, withoutProgress } from './cli-process.js';
import { pythonWith } from './python.js';

/** A user id that no user has. */
const UID = '54321';
const PHOTOS = path.resolve('examples/photos');
const PYTHON_SOURCE = fileURLToPath(new URL('../python/src', import.meta.url));

let server: BucketServer;
/** The only writable folder. */
let folder: string;
/** Why there can be no such user on this machine; null if there can. */
let reason: string | null = null;

beforeAll(async () => {
  server = await bucketServer();
  folder = fs.mkdtempSync('/tmp/shardtool-unknown-user-');
  fs.chmodSync(folder, 0o777);
  const { code, stderr } = await asUnknownUser(process.execPath, [bin, '--version']);
  if (code !== 0) reason = stderr;
});
afterAll(async () => {
  await server.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

/**
 * Runs a program in {@link folder} as containers often do: as a user with only an id, without HOME and TMPDIR, with the C
 * locale, and with a root file system that is read-only.
 */
async function asUnknownUser(program: string, args: readonly string[], env: Record<string, string> = {}) {
  const inside =
    'mount --bind "$0" "$0" && mount -o remount,ro,bind / && cd "$0" && ' +
    `exec setpriv --reuid ${UID} --regid ${UID} --clear-groups "$@"`;
  const command = ['--mount', 'sh', '-c', inside, folder, program, ...args];
  const child = spawn('unshare', command, {
    env: { PATH: process.env.PATH, LC_ALL: 'C', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  try {
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { code: code as number | null, stdout, stderr: withoutProgress(stderr) };
  } catch (error) {
    return { code: null, stdout: '', stderr: (error as Error).message };
  }
}

/** Runs `shardtool` and returns what it printed. */
async function shardtool(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await asUnknownUser(process.execPath, [bin, ...args], {
    AWS_ENDPOINT_URL: server.endpoint,
    AWS_ACCESS_KEY_ID: 'someone',
    AWS_SECRET_ACCESS_KEY: 'very-secret',
  });
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
  return stdout;
}

function skipWithout({ skip }: TestContext): void {
  if (reason !== null) skip(`Needs root, unshare, setpriv and a checkout that others can read: ${reason}`);
}

test('the main commands work for a user without a name, a home and a temporary folder', async (context) => {
  skipWithout(context);
  expect(await shardtool('pack', PHOTOS, 'shards', '--max-shard-samples', '20', '--resize', '64')).toContain(
    'Packed 60',
  );
  expect(await shardtool('ls', 'shards')).toContain('60 samples');
  expect(await shardtool('stats', 'shards')).toContain('6 classes');
  expect(await shardtool('inspect', 'shards')).toContain('mean and std');
  expect(await shardtool('split', 'shards', '--val', '0.5')).toContain('Made');
  expect(await shardtool('verify', 'shards', '--check', 'decode')).toContain('all images decode');
  expect(await shardtool('verify', 'shards', '--fix')).toContain('nothing to repair');
  expect(await shardtool('unpack', 'shards', 'files')).toContain('Unpacked 120 files');
  expect(await shardtool('convert', 'shards', 'lmdb', '--format', 'lmdb')).toContain('Converted 60');
  expect(await shardtool('bench', 'shards', '--transform', 'raw', '--json')).toContain('"images":60');
});

test('that user can read shards of other software, on disk and in a bucket', async (context) => {
  skipWithout(context);
  const files = fs.readdirSync(path.join(folder, 'shards')).filter((name) => name.endsWith('.tar'));
  const foreign = path.join(folder, 'foreign');
  fs.mkdirSync(foreign);
  for (const name of files) {
    fs.copyFileSync(path.join(folder, 'shards', name), path.join(foreign, name));
    server.put(`b/foreign/${name}`, fs.readFileSync(path.join(foreign, name)));
  }
  for (const place of ['foreign', 's3://b/foreign']) {
    expect(await shardtool('ls', place)).toContain('60 samples');
    expect(await shardtool('bench', place, '--transform', 'raw', '--json')).toContain('"images":60');
  }
  const { code, stderr } = await asUnknownUser(process.execPath, [bin, 'index', 'foreign']);
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/cannot be written.*Set SHARDTOOL_SIDECARS to a writable folder/);
});

test('that user can pack to and from a bucket, if a folder for temporary shards is given', async (context) => {
  skipWithout(context);
  const pack = ['pack', PHOTOS, 's3://b/packed', '--max-shard-samples', '20', '--resize', '64'];
  const { code, stderr } = await asUnknownUser(process.execPath, [bin, ...pack], { TMPDIR: '/nowhere' });
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/cannot be created \(EROFS.*set --staging or TMPDIR to another local folder/);
  expect(await shardtool(...pack, '--staging', 'staging')).toContain('Packed 60');
  for (const file of fs.readdirSync(path.join(PHOTOS, 'cat'))) {
    server.put(`b/images/cat/${file}`, fs.readFileSync(path.join(PHOTOS, 'cat', file)));
  }
  expect(await shardtool('pack', 's3://b/images', 'from-bucket')).toContain('Packed 10');
  expect(await shardtool('verify', 's3://b/packed')).toContain('OK, all checksums match');
});

test('that user gets credentials from the endpoint of the container', async (context) => {
  skipWithout(context);
  const Expiration = new Date(Date.now() + 3_600_000).toISOString();
  const credentials = { AccessKeyId: 'OFTHECONTAINER', SecretAccessKey: 'very-secret', Token: 'token', Expiration };
  const endpoint = http.createServer((_, response) => response.end(JSON.stringify(credentials)));
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  const { port } = endpoint.address() as AddressInfo;
  server.asked.length = 0;
  const { code, stderr } = await asUnknownUser(process.execPath, [bin, 'ls', 's3://b/packed'], {
    AWS_ENDPOINT_URL: server.endpoint,
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${port}/credentials`,
  });
  endpoint.close();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(server.asked[0]!.headers.authorization).toContain('Credential=OFTHECONTAINER/');
});

test('that user can train and write with Python', async (context) => {
  skipWithout(context);
  const python = pythonWith('numpy', 'PIL');
  if (python === null) return context.skip('no Python');
  const program = `
import numpy, shardtool
with shardtool.Loader('shards', transform='raw', batch_size=8, workers=1, output='numpy') as loader:
    print(sum(len(batch.labels) for batch in loader))
with shardtool.Writer('written') as writer:
    writer.add('a', numpy.zeros((8, 8, 3), 'uint8'))
`;
  const env = { PYTHONPATH: PYTHON_SOURCE, PYTHONDONTWRITEBYTECODE: '1', SHARDTOOL_NODE: process.execPath };
  const { code, stdout, stderr } = await asUnknownUser(path.resolve(python), ['-c', program], env);
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '60\n', stderr: '' });
  expect(fs.existsSync(path.join(folder, 'written', 'dataset.json'))).toBe(true);
});
