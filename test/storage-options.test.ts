import fs from 'node:fs';
import path from 'node:path';
import {
  addOverlay,
  checkOverlays,
  type Dataset,
  inspect,
  listOverlays,
  openDataset,
  openMixture,
  overlayHistory,
  removeOverlay,
  splitDataset,
  subsetDataset,
} from '@shardtool/reader';
import type { StorageOptions } from '@shardtool/storage';
import { commitParts, convert, indexShards, pack, readPackedLabels, repair, verify, Writer } from '@shardtool/writer';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type BucketServer, bucketServer } from './bucket-server.js';
import { emptyFolder, packedSmall, smallImages } from './datasets.js';

/** Two stores that have a dataset at the same location, with different images. Only `storage` distinguishes them. */
let stores: readonly { readonly server: BucketServer; readonly shards: string; readonly storage: StorageOptions }[];
const PLACE = 's3://b/shards';

beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'someone');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'very-secret');
  vi.stubEnv('SHARDTOOL_SIDECARS', emptyFolder());
  for (const name of ['AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3', 'AWS_REGION']) vi.stubEnv(name, undefined);
  // A request without the option fails here, and does not leave this machine.
  vi.stubEnv('HTTPS_PROXY', 'http://127.0.0.1:9');
  vi.stubEnv('NO_PROXY', '127.0.0.1');
  stores = await Promise.all([40, 48].map(storeOf));
});
afterAll(async () => {
  for (const { server } of stores) await server.stop();
  vi.unstubAllEnvs();
});

async function storeOf(samples: number) {
  const server = await bucketServer();
  const shards = await packedSmall({ samples, classes: 2 }, { maxShardSamples: 8, index: ['crops'] });
  put(server, shards, 'b/shards');
  return { server, shards, storage: { endpointUrl: server.endpoint } };
}

function put(server: BucketServer, folder: string, at: string): void {
  for (const name of fs.readdirSync(folder)) server.put(`${at}/${name}`, fs.readFileSync(path.join(folder, name)));
}

async function keysOf(dataset: Dataset): Promise<string[]> {
  await using loader = dataset.loader({ transform: 'train224', seed: 1, batchSize: 8, workers: 1 });
  const keys: string[] = [];
  for await (const batch of loader) keys.push(...batch.keys);
  return keys;
}

test('two datasets of one location can be read concurrently, each from its own store', async () => {
  const datasets = await Promise.all(stores.map(({ storage }) => openDataset(PLACE, { storage })));
  const onDisk = await Promise.all(stores.map(({ shards }) => openDataset(shards)));
  for (const [i, dataset] of datasets.entries()) {
    expect((await keysOf(dataset)).sort()).toEqual((await keysOf(onDisk[i]!)).sort());
    expect(await dataset.get(dataset.size - 1)).toEqual(await onDisk[i]!.get(dataset.size - 1));
    expect(await dataset.files.crops(0)).not.toBeNull();
    const sources: string[] = [];
    for await (const { source } of dataset.samples()) sources.push(source);
    expect(sources).toHaveLength(dataset.size);
  }
  await using mixed = await openMixture(
    stores.map(({ storage }, i) => ({ dataset: PLACE, name: `store ${i}`, storage })),
  );
  expect((await keysOf(mixed)).length).toBeGreaterThan(40);
  for (const dataset of [...datasets, ...onDisk]) await dataset.close();
});

test('overlays, splits, subsets and inspections use the given store', async () => {
  const [{ storage }, other] = stores as [(typeof stores)[0], (typeof stores)[0]];
  const asked = other.server.asked.length;
  await addOverlay(PLACE, { name: 'few', excludeWhere: 'key > "b"', storage });
  await subsetDataset(PLACE, { name: 'half', share: 0.5, parent: 'few', storage });
  await splitDataset(PLACE, { shares: new Map([['val', 0.5]]), storage });
  expect((await listOverlays(PLACE, { storage })).map(({ name }) => name)).toEqual(['few', 'half', 'split']);
  expect(await overlayHistory(PLACE, 'half', { storage })).toHaveLength(2);
  expect(await checkOverlays(PLACE, { storage })).toEqual([]);
  await using dataset = await openDataset(PLACE, { overlay: 'split', split: 'val', storage });
  expect(dataset.size).toBeLessThan(40);
  await removeOverlay(PLACE, 'half', { storage });
  expect(await inspect(PLACE, { workers: 1, storage })).toMatchObject({ samples: 40 });
  expect(other.server.asked).toHaveLength(asked);
});

test('shards of other software are found, scanned and looked up in the given store', async () => {
  const [{ server, shards, storage }] = stores as [(typeof stores)[0]];
  const tars = fs.readdirSync(shards).filter((name) => name.endsWith('.tar'));
  for (const name of tars) server.put(`b/foreign/${name}`, fs.readFileSync(path.join(shards, name)));
  for (const place of ['s3://b/foreign', tars.map((name) => `s3://b/foreign/${name}`)]) {
    await using dataset = await openDataset(place, { storage });
    expect(await keysOf(dataset)).toHaveLength(40);
  }
});

test('packing, converting, verifying and repairing read and write the given store', async () => {
  const [{ server, shards, storage }, other] = stores as [(typeof stores)[0], (typeof stores)[0]];
  const asked = other.server.asked.length;
  const images = await smallImages({ samples: 40, classes: 2 });
  for (const cls of ['a', 'b']) put(server, path.join(images, cls), `b/images/${cls}`);
  const names = fs.readdirSync(images, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.jpg'));
  server.put('b/labels.csv', `path,class\n${names.map((name) => `${name},x`).join('\n')}\n`);
  server.put('b/classes.txt', 'x\n');
  const labelled = { labels: 's3://b/labels.csv', classes: 's3://b/classes.txt', dedupe: true, storage } as const;
  for (const workers of [1, 2]) {
    const output = `s3://b/packed-${workers}`;
    const options = { ...labelled, workers, maxShardSamples: 8, index: ['crops'] } as const;
    expect(await pack('s3://b/images', output, options)).toMatchObject({ samples: 40 });
    expect(await verify(output, { workers, storage })).toMatchObject({ samples: 40, faults: 0 });
    expect(await convert(output, `s3://b/lmdb-${workers}`, { format: 'lmdb', workers, storage })).toMatchObject({
      samples: 40,
    });
    const excludeKeys = ['a/0000'];
    const few = `s3://b/few-${workers}`;
    expect(await convert(PLACE, few, { excludeKeys, workers, storage })).toMatchObject({ samples: 39 });
  }
  for (const index of [0, 1]) {
    await pack('s3://b/images', 's3://b/parts', { part: { index, of: 2 }, workers: 1, storage });
  }
  expect(await commitParts('s3://b/parts', { storage })).toMatchObject({ samples: 40, wasCommitted: true });
  await using writer = new Writer('s3://b/written', { storage });
  await writer.add({ key: 'one', jpg: fs.readFileSync(path.join(images, names[0]!)) });
  expect(await writer.close()).toMatchObject({ samples: 1 });
  expect(await readPackedLabels('s3://b/labels.csv', { storage })).toMatchObject({ by: 'path' });
  expect(await indexShards(['s3://b/foreign'], { overwrite: true, storage })).toMatchObject({ samples: 40 });
  const damaged = path.join(emptyFolder(), 'damaged');
  fs.cpSync(shards, damaged, { recursive: true });
  fs.rmSync(path.join(damaged, '000001.tar'));
  const repaired = await repair(damaged, { source: 's3://b/images', storage, workers: 1 });
  expect(repaired).toMatchObject({ samples: 40, restored: 8 });
  expect(other.server.asked).toHaveLength(asked);
});

test('the error for an unknown storage option, or an invalid value, names it', async () => {
  const open = (storage: object) => openDataset(PLACE, { storage });
  await expect(open({ endpointURL: 'x' })).rejects.toThrow(
    /"storage" has no option "endpointURL"; did you mean "endpointUrl"/,
  );
  await expect(open({ unsigned: 'yes' })).rejects.toThrow('The option storage.unsigned is true or false, not "yes".');
  await expect(pack('s3://b/images', emptyFolder(), { storage: 'x' as never })).rejects.toThrow(/"storage"/);
});
