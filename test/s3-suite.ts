import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { openStorage, type Storage } from '@shardtool/storage';
import { convert, type PackOptions, pack } from '@shardtool/writer';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { emptyFolder, smallImages } from './datasets.js';
import { type FaultyRelay, faultyRelay } from './faulty-relay.js';
import { startPack } from './pack-processes.js';
import { digestsOf, newFolder } from './pack-workbench.js';
import { S3_KEYS, type S3Server } from './s3-server.js';

const OPTIONS: PackOptions = { maxShardSamples: 7, workers: 1 };
const EPOCH = { transform: 'raw', batchSize: 8, seed: 3, workers: 1, streams: 4, blockSamples: 2 } as const;

/** Tests with an independent S3 server; `start` starts it on a folder, whose folders are the buckets. */
export function s3Suite(name: string, start: ((folder: string) => Promise<S3Server>) | null): void {
  describe.skipIf(start === null)(`S3, with the server of ${name}`, () => {
    const before = { ...process.env };
    let folder: string;
    let server: S3Server;
    let relay: FaultyRelay;
    let storage: Storage;
    /** Images, and the same packed to shards on this machine. */
    let images: string;
    let local: string;

    beforeAll(async () => {
      folder = emptyFolder();
      fs.mkdirSync(path.join(folder, 'bucket/pre fix'), { recursive: true });
      images = await smallImages({ samples: 60, classes: 3, bytes: (sample) => 2000 + sample * 100 });
      local = newFolder();
      await pack(images, local, OPTIONS);
      fs.cpSync(local, path.join(folder, 'bucket/shards'), { recursive: true });
      server = await start!(folder);
      relay = await faultyRelay(server.endpoint);
      Object.assign(process.env, S3_KEYS);
      storage = await openStorage('s3://bucket/pre fix/', { endpointUrl: server.endpoint });
    });
    afterAll(async () => {
      process.env = before;
      await relay?.stop();
      await server?.stop();
    });
    beforeEach(() => {
      process.env.AWS_ENDPOINT_URL = relay.endpoint;
      relay.fault = () => undefined;
      relay.requests = 0;
    });

    test('objects can be uploaded, listed, read at any position, and removed', async () => {
      const bytes = randomBytes(300_000);
      await storage.put('a b+c (1)é.tar', bytes);
      await storage.put('folder/inner', Buffer.from('x'));
      await storage.put('empty', new Uint8Array(0));
      const names = async (options = {}): Promise<[string, number][]> => {
        const found: [string, number][] = [];
        for await (const { name, size } of storage.list('', options)) found.push([name, size]);
        return found;
      };
      expect(await names()).toEqual([
        ['a b+c (1)é.tar', 300_000],
        ['empty', 0],
      ]);
      expect(await names({ deep: true })).toContainEqual(['folder/inner', 1]);
      const source = await storage.open('a b+c (1)é.tar');
      const target = Buffer.alloc(1000);
      expect(await source.readAt(299_500, target)).toBe(500);
      expect(target.subarray(0, 500)).toEqual(bytes.subarray(299_500));
      await storage.remove('a b+c (1)é.tar');
      await storage.remove('a b+c (1)é.tar');
      expect(await storage.entry('a b+c (1)é.tar')).toBeNull();
      await expect(storage.open('a b+c (1)é.tar')).rejects.toThrow(/no such file/);
    });

    test('an existing object is not replaced with ifAbsent', async () => {
      await storage.put('once', Buffer.from('first'));
      await expect(storage.put('once', Buffer.from('second'), { ifAbsent: true })).rejects.toMatchObject({
        name: 'FileExistsError',
      });
      expect((await storage.entry('once'))?.size).toBe('first'.length);
    });

    test('a long file is uploaded in parts', async () => {
      const file = path.join(emptyFolder(), 'long');
      const bytes = randomBytes((40 << 20) + 1);
      fs.writeFileSync(file, bytes);
      await storage.put('long', { file });
      expect((await storage.entry('long'))?.size).toBe(bytes.length);
      const source = await storage.open('long');
      const target = Buffer.alloc(bytes.length);
      await source.readAt(0, target);
      expect(target.equals(bytes)).toBe(true);
    });

    test('pack, repeat, overwrite and convert work', async () => {
      const packTo = (options: PackOptions = {}) => pack(images, 's3://bucket/whole', { ...OPTIONS, ...options });
      const there = path.join(folder, 'bucket/whole');
      await packTo();
      expect(digestsOf(there)).toEqual(digestsOf(local));
      expect(await packTo()).toMatchObject({ wasCommitted: true });
      await packTo({ seed: 3, overwrite: true });
      const [other, lmdb] = [newFolder(), newFolder()];
      await pack(images, other, { ...OPTIONS, seed: 3 });
      expect(digestsOf(there)).toEqual(digestsOf(other));
      await convert('s3://bucket/whole', 's3://bucket/lmdb', { format: 'lmdb' });
      await convert(other, lmdb, { format: 'lmdb' });
      const { 'pack.json': _, ...expected } = digestsOf(lmdb);
      expect(digestsOf(path.join(folder, 'bucket/lmdb'))).toMatchObject(expected);
    });

    test('a killed pack resumes with the existing shards, even if requests fail', async () => {
      const staging = emptyFolder();
      const child = startPack(images, 's3://bucket/killed', { ...OPTIONS, staging });
      relay.fault = (n) => {
        if (n === 25) child.process.kill('SIGKILL');
        return undefined;
      };
      expect((await child.ended).code).toBeNull();
      relay.requests = 0;
      relay.fault = (n) => (n % 7 === 0 ? (n % 2 === 0 ? 'reset' : 'busy') : undefined);
      const { keptShards } = await pack(images, 's3://bucket/killed', { ...OPTIONS, staging });
      expect(keptShards).toBeGreaterThan(0);
      expect(digestsOf(path.join(folder, 'bucket/killed'))).toEqual(digestsOf(local));
    });

    test('an epoch equals that of the disk if requests are reset, truncated or rejected, with and without a cache', async () => {
      const faults = ['reset', 'busy', 'cut'] as const;
      let given = 0;
      relay.fault = (n) => (n % 3 === 0 ? faults[given++ % 3] : undefined);
      const expected = await epoch(local);
      expect(await epoch('s3://bucket/shards')).toBe(expected);
      expect(await epoch('s3://bucket/shards', { cache: path.join(emptyFolder(), 'cache') })).toBe(expected);
      expect(given).toBeGreaterThan(10);
    });

    test('gs:// uses the same protocol, with different keys', async () => {
      const storage = { endpointUrl: server.endpoint, region: S3_KEYS.AWS_REGION };
      const keys = { AWS_ACCESS_KEY_ID: 'unknown', AWS_SECRET_ACCESS_KEY: 'nothing' };
      Object.assign(process.env, keys, {
        GS_ACCESS_KEY_ID: S3_KEYS.AWS_ACCESS_KEY_ID,
        GS_SECRET_ACCESS_KEY: S3_KEYS.AWS_SECRET_ACCESS_KEY,
      });
      await using dataset = await openDataset('gs://bucket/shards', { storage });
      await using here = await openDataset(local);
      expect(await dataset.get(7)).toEqual(await here.get(7));
      const listed: string[] = [];
      for await (const { name } of (await openStorage('gs://bucket/shards', storage)).list()) listed.push(name);
      expect(listed).toEqual(Object.keys(digestsOf(local)).sort());
      Object.assign(process.env, S3_KEYS);
    });

    test('the error for wrong keys does not contain the secret', async () => {
      process.env.AWS_SECRET_ACCESS_KEY = 'wrong-secret';
      const other = await openStorage('s3://bucket/', { endpointUrl: server.endpoint });
      const error: Error = await other.open('pre fix/long').catch((error) => error);
      expect(error.name).toBe('RequestRejectedError');
      expect(error.message).toMatch(/^s3:\/\/bucket\/pre fix\/long cannot be read: access is denied/);
      expect(error.message).not.toContain('wrong-secret');
    });
  });
}

/** A digest of the batches of an epoch. */
async function epoch(from: string, options: object = {}): Promise<string> {
  await using dataset = await openDataset(from);
  await using loader = dataset.loader({ ...EPOCH, shuffleUnit: 'shard', ...options });
  const hash = createHash('sha256');
  for await (const batch of loader) {
    for (const image of batch.encoded!) hash.update(image);
    hash.update(batch.keys.join());
  }
  return hash.digest('hex');
}
