import fs from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { openStorage } from '@shardtool/storage';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { type FakeHub, fakeHub } from './fake-hub.js';

let hub: FakeHub;
let shards: string;
let root: string;
const { HF_ENDPOINT, HF_TOKEN } = process.env;

beforeAll(async () => {
  root = path.join(emptyFolder(), 'repository');
  shards = path.join(root, 'train');
  fs.cpSync(await packedPhotos(), shards, { recursive: true });
  fs.mkdirSync(path.join(root, 'foreign'));
  for (const name of tars()) fs.copyFileSync(path.join(shards, name), path.join(root, 'foreign', name));
  hub = await fakeHub(root);
  process.env.HF_ENDPOINT = hub.endpoint;
  process.env.SHARDTOOL_SIDECARS = emptyFolder();
  delete process.env.HF_TOKEN;
});
afterAll(async () => {
  await hub.stop();
  Object.assign(process.env, { HF_ENDPOINT, HF_TOKEN });
  delete process.env.SHARDTOOL_SIDECARS;
});
afterEach(() => {
  vi.unstubAllEnvs();
  hub.asked.length = 0;
  hub.cdn.clear();
  hub.cdn.fault = () => undefined;
  hub.token = null;
  hub.editList = (link, body) => [link, body];
});

const tars = () => fs.readdirSync(shards).filter((name) => name.endsWith('.tar'));

async function keysOf(location: string | readonly string[]): Promise<string[]> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ transform: 'raw', batchSize: 16, seed: 3, workers: 1 });
  const keys: string[] = [];
  for await (const batch of loader) keys.push(...batch.keys);
  return keys;
}

test('a dataset on the Hub gives the same batches as on disk', async () => {
  expect(await keysOf('hf://datasets/me/cats/train')).toEqual(await keysOf(shards));
  // All requests use the commit, and tars are fetched from their host.
  const resolved = hub.asked.filter(({ url }) => url.includes('/resolve/'));
  expect(resolved.length).toBeGreaterThan(0);
  expect(resolved.every(({ url }) => url.includes(`/resolve/${hub.commit}/train/`))).toBe(true);
  expect(hub.cdn.asked.length).toBeGreaterThan(0);
  expect(hub.cdn.asked.every(({ headers }) => headers.authorization === undefined)).toBe(true);
});

test('a folder of tars is listed page by page, at the given revision', async () => {
  expect(await keysOf('hf://datasets/me/cats/foreign')).toHaveLength(60);
  expect(hub.asked.filter(({ url }) => url.includes('/tree/')).length).toBeGreaterThan(1);
  const storage = await openStorage('hf://datasets/me/cats@refs%2Fpr%2F1');
  const names: string[] = [];
  for await (const { name } of storage.list('foreign/', { deep: true })) names.push(name);
  expect(names.sort()).toEqual(tars().map((name) => `foreign/${name}`));
  expect(hub.asked.at(-1)!.url).toContain('b'.repeat(40));
  const { size } = fs.statSync(path.join(shards, tars()[0]!));
  expect(await storage.entry(`train/${tars()[0]}`)).toMatchObject({ size, version: `"train/${tars()[0]}"` });
  expect(hub.cdn.asked.filter(({ method }) => method === 'HEAD')).toEqual([]);
  expect(await storage.entry('train/none')).toBeNull();
});

test('a list continues at the configured endpoint, whichever host its next page names, and ends or throws an error', async () => {
  const listed = async (): Promise<number> => {
    const storage = await openStorage('hf://datasets/me/cats');
    let files = 0;
    for await (const _ of storage.list('', { deep: true })) files++;
    return files;
  };
  const whole = await listed();
  hub.editList = (link, body) => [link.replace(hub.endpoint, 'https://hub.invalid'), body];
  expect(await listed()).toBe(whole);
  let pages = 0;
  hub.editList = (link, body) => [link, pages++ % 2 === 0 ? body.slice(0, -10) : body];
  expect(await listed()).toBe(whole);
  hub.editList = (link, body) => [link.replace(/cursor=\d+/, 'cursor=3'), body];
  await expect(listed()).rejects.toThrow(/hf:.*cannot be listed: the server returns the same part of the list again/);
});

test('the location of a file is resolved once, and again after it has expired', async () => {
  const storage = await openStorage('hf://datasets/me/cats/train');
  const name = tars()[0]!;
  const bytes = fs.readFileSync(path.join(shards, name));
  const source = await storage.open(name, { size: bytes.length });
  const read = async (offset: number) => {
    const target = new Uint8Array(1000);
    await source.readAt(offset, target);
    expect(Buffer.from(target)).toEqual(bytes.subarray(offset, offset + 1000));
  };
  await read(0);
  await read(5000);
  const asksOf = () => hub.asked.filter(({ url }) => url.includes(`/resolve/`)).length;
  expect(asksOf()).toBe(1);
  let refused = 0;
  hub.cdn.fault = () => (refused++ === 0 ? { status: 403 } : undefined);
  await read(9000);
  expect(asksOf()).toBe(2);
  hub.cdn.fault = () => ({ status: 403 });
  const error: Error = await source.readAt(20_000, new Uint8Array(10)).then(
    () => new Error('nothing was refused'),
    (error) => error,
  );
  expect(error.message).toMatch(/^hf:\/\/datasets\/me\/cats\/train\/000000.tar cannot be read: access is denied/);
  expect(error.message).not.toMatch(/secret/);
});

test('a private repository is read with the token of HF_TOKEN, which is not sent to other hosts or shown in messages', async () => {
  hub.token = 'hf_hidden';
  const refused = await shardtool('ls', 'hf://datasets/me/cats/train');
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toMatch(/RepoNotFound: if it is private or gated, set HF_TOKEN/);
  vi.stubEnv('HF_TOKEN', 'hf_wrong');
  const wrong = await shardtool('ls', 'hf://datasets/me/cats/train');
  expect(wrong.stderr).toMatch(/the token in HF_TOKEN may not read it/);
  expect(wrong.stderr).not.toContain('hf_wrong');
  vi.stubEnv('HF_TOKEN', 'hf_hidden');
  // Its old name leads to the same host, which gets the token again.
  for (const name of ['cats', 'kittens']) {
    const args = ['bench', `hf://datasets/me/${name}/train`, '--workers', '1', '--transform', 'raw', '--json'];
    const { code, stdout, stderr } = await shardtool(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ images: 60, bad: 0 });
  }

  expect(hub.cdn.asked.length).toBeGreaterThan(0);
  expect(hub.cdn.asked.every(({ headers }) => headers.authorization === undefined)).toBe(true);
});

test('the error for a missing repository, or an invalid Hub, is one sentence', async () => {
  await expect(openDataset('hf://datasets/me/cats@v9/train')).rejects.toThrow(
    /the hub has no dataset me\/cats with the revision v9/,
  );
  await expect(openDataset('hf://me/cats')).rejects.toThrow(/Write hf:\/\/datasets\/user\/name/);
  const storage = await openStorage('hf://datasets/me/cats');
  await expect(storage.put('x', new Uint8Array(1))).rejects.toThrow(/cannot be written/);
  const place = process.env.HF_ENDPOINT;
  process.env.HF_ENDPOINT = hub.cdn.url;
  fs.mkdirSync(path.join(root, 'api/datasets/no/hub/revision'), { recursive: true });
  fs.writeFileSync(path.join(root, 'api/datasets/no/hub/revision/main'), '<html>');
  await expect(openDataset('hf://datasets/no/hub')).rejects.toThrow(/the server is not a Hugging Face Hub/);
  process.env.HF_ENDPOINT = place;
});
