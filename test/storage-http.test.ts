import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openSource, openStorage, readWhole } from '@shardtool/storage';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type Fault, type FaultyServer, faultyServer } from './faulty-server.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'storage-http-'));
const bytes = randomBytes(1 << 20);
let server: FaultyServer;

beforeAll(async () => {
  fs.writeFileSync(path.join(folder, 'data'), bytes);
  fs.writeFileSync(path.join(folder, 'small'), 'hello');
  fs.writeFileSync(path.join(folder, 'empty'), '');
  server = await faultyServer(folder);
});
afterAll(async () => {
  await server.stop();
  fs.rmSync(folder, { recursive: true });
});
beforeEach(() => {
  server.clear();
  server.fault = () => undefined;
});

async function read(location: string, offset: number, length: number): Promise<Buffer> {
  const source = await openSource(location);
  const target = Buffer.from(new SharedArrayBuffer(length));
  const got = await source.readAt(offset, target);
  await source.close();
  return target.subarray(0, got);
}

test('a file can be read at any position, and a short file with one request', async () => {
  expect(await read(`${server.url}/data`, 100_000, 300_000)).toEqual(bytes.subarray(100_000, 400_000));
  expect(await read(`${server.url}/data`, bytes.length - 10, 100)).toEqual(bytes.subarray(-10));
  server.clear();
  expect((await read(`${server.url}/small`, 0, 100)).toString()).toBe('hello');
  expect((await read(`${server.url}/empty`, 0, 100)).length).toBe(0);
  expect(server.asked).toHaveLength(2);
});

test('a file of 4 MB, which the dataset.json of 40,000 shards has, is read as a whole with one request', async () => {
  const large = randomBytes(4_000_000);
  fs.writeFileSync(path.join(folder, 'large'), large);
  expect(Buffer.from(await readWhole(`${server.url}/large`)).equals(large)).toBe(true);
  expect(server.asked).toHaveLength(1);
});

test('if the size is known, nothing is requested before the first read', async () => {
  const source = await openSource(`${server.url}/data`, { size: bytes.length });
  expect(server.asked).toHaveLength(0);
  await source.readAt(0, new Uint8Array(10));
  expect(server.asked).toHaveLength(1);
  const other = await openSource(`${server.url}/data`, { size: 10 });
  await expect(other.readAt(0, new Uint8Array(10))).rejects.toThrow(
    /has changed: it has 1048576 bytes, and the dataset says 10/,
  );
});

const transientFaults: [string, Fault][] = [
  ['a reset', 'reset'],
  ['a response that ends early', 'cut'],
  ['a wrong range', 'wrong range'],
  ['a 503', { status: 503 }],
  ['a 503 with Retry-After', { status: 503, headers: { 'retry-after': '0' } }],
  ['a 500', { status: 500 }],
  ['a whole file instead of a range', 'ignored range'],
  ['a response that does not state its range', 'no content-range'],
  ['an unexpected 304', { status: 304 }],
];
test.each(transientFaults)('%s is retried', async (_, fault) => {
  server.fault = ({ before }) => (before === 0 ? fault : undefined);
  expect(await read(`${server.url}/data`, 70_000, 200_000)).toEqual(bytes.subarray(70_000, 270_000));
});

test('a response that makes almost no progress is requested again on a new connection', async () => {
  const source = await openSource(`${server.url}/data`);
  server.fault = ({ before }) => (before === 0 ? 'drip' : undefined);
  const target = Buffer.alloc(1000);
  vi.useFakeTimers({ toFake: ['setInterval'] });
  const watches = vi.spyOn(globalThis, 'setInterval');
  try {
    const reading = source.readAt(200_000, target);
    await vi.waitFor(() => expect(watches).toHaveBeenCalledWith(expect.any(Function), 15_000));
    vi.advanceTimersByTime(15_000);
    await reading;
  } finally {
    vi.restoreAllMocks();
    vi.useRealTimers();
  }
  expect(target).toEqual(bytes.subarray(200_000, 201_000));
  expect(server.asked).toHaveLength(3);
});

test('a server that does not respond is retried', { timeout: 30_000 }, async () => {
  const source = await openSource(`${server.url}/data`);
  server.fault = ({ before }) => (before === 0 ? 'stall' : undefined);
  const target = Buffer.alloc(1000);
  await source.readAt(200_000, target);
  expect(target).toEqual(bytes.subarray(200_000, 201_000));
});

test('the client waits for a server that is unavailable for a while', { timeout: 40_000 }, async () => {
  const storage = await openStorage(server.url);
  const source = await storage.open('data');
  await server.stop();
  const target = Buffer.alloc(1000);
  const { retries } = storage.counts;
  const reading = source.readAt(300_000, target);
  await vi.waitUntil(() => storage.counts.retries > retries, { timeout: 30_000 });
  await server.start();
  await reading;
  expect(target).toEqual(bytes.subarray(300_000, 301_000));
});

test('the error for a request that cannot succeed is one sentence, without the query or the user', async () => {
  const secret = `${server.url.replace('//', '//user:word@')}/none?X-Amz-Signature=abc`;
  const error: Error = await openSource(secret).catch((error) => error);
  expect(error.name).toBe('FileNotFoundError');
  expect(error.message).toBe(`${server.url}/none cannot be read: there is no such file (404).`);
  for (const status of [401, 403]) {
    server.fault = () => ({ status });
    const error: Error = await openSource(secret).catch((error) => error);
    expect(error.message).toContain(`(${status})`);
    expect(error.message).not.toMatch(/Signature|word/);
  }
  expect(server.asked).toHaveLength(3);
  expect(server.asked[0]!.headers.authorization).toMatch(/^Basic /);
});

test('a server that ignores ranges is reported, unless the file is short', async () => {
  server.fault = () => 'ignored range';
  expect((await read(`${server.url}/small`, 1, 3)).toString()).toBe('ell');
  await expect(read(`${server.url}/data`, 0, 10)).rejects.toThrow(/ignores range requests/);
});

test('a file that is replaced while it is open is an error that names it', async () => {
  fs.writeFileSync(path.join(folder, 'replaced'), randomBytes(200_000));
  const source = await openSource(`${server.url}/replaced`);
  await source.readAt(100_000, new Uint8Array(10));
  fs.writeFileSync(path.join(folder, 'replaced'), randomBytes(200_000));
  await expect(source.readAt(120_000, new Uint8Array(10))).rejects.toThrow(/replaced has changed/);
});

test('redirects are followed up to five times, without credentials', async () => {
  const location = { location: `${server.url.replace('127.0.0.1', 'localhost')}/data` };
  server.fault = ({ url }) => (url === '/moved' ? { status: 302, headers: location } : undefined);
  expect(await read(`${server.url.replace('//', '//user:word@')}/moved`, 500_000, 10)).toEqual(
    bytes.subarray(500_000, 500_010),
  );
  const moved = server.asked.filter(({ url }) => url === '/data');
  expect(moved.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
  server.fault = () => ({ status: 302, headers: { location: '/again' } });
  await expect(read(`${server.url}/moved`, 0, 10)).rejects.toThrow(/redirected more than 5 times/);
});

test('a signal ends a read immediately', async () => {
  const source = await openSource(`${server.url}/data`);
  server.fault = () => 'stall';
  const controller = new AbortController();
  const reading = source.readAt(200_000, new Uint8Array(1000), controller.signal);
  setTimeout(() => controller.abort(new Error('enough')), 50);
  await expect(reading).rejects.toThrow('enough');
});

test('a slow read is requested a second time', async () => {
  const storage = await openStorage(`${server.url}/`);
  const source = await storage.open('data');
  for (let i = 0; i < 160; i++) await source.readAt(100_000 + i, new Uint8Array(1000));
  server.fault = ({ before }) => (before === 0 ? 'stall' : undefined);
  const target = Buffer.alloc(1000);
  await source.readAt(600_000, target);
  expect(target).toEqual(bytes.subarray(600_000, 601_000));
  expect(storage.counts.hedges).toBeGreaterThan(0);
  expect(storage.counts.retries).toBe(0);
});

test('opening a file that takes long is requested a second time', async () => {
  const storage = await openStorage(`${server.url}/`);
  for (let i = 0; i < 160; i++) await storage.open('data', { firstBytes: 1000 });
  server.clear();
  let late = 0;
  server.fault = () => (late++ === 0 ? 'stall' : undefined);
  const before = storage.counts.hedges;
  expect((await storage.open('data', { firstBytes: 1000 })).size).toBe(bytes.length);
  expect(storage.counts.hedges).toBe(before + 1);
});

test('the error for a URL that cannot be listed, or is of an unknown kind, says what to do', async () => {
  const storage = await openStorage(server.url);
  await expect(storage.list().next()).rejects.toThrow(/HTTP has no listings/);
  expect(await storage.entry('small')).toMatchObject({ size: 5 });
  expect(await storage.entry('none')).toBeNull();
  for (const scheme of ['az', 'constructor'])
    await expect(openStorage(`${scheme}://container/x`)).rejects.toThrow(/is not a supported location/);
});
