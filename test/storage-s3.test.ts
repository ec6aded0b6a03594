import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openStorage, type Storage } from '@shardtool/storage';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rclone, S3_KEYS, s3Server } from './s3-server.js';

describe.skipIf(rclone === null)('S3, with the server of rclone', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'storage-s3-'));
  const before = { ...process.env };
  let server: Awaited<ReturnType<typeof s3Server>>;
  let storage: Storage;

  beforeAll(async () => {
    fs.mkdirSync(path.join(folder, 'bucket/pre fix'), { recursive: true });
    server = await s3Server(folder);
    Object.assign(process.env, S3_KEYS);
    storage = await openStorage('s3://bucket/pre fix/', { endpointUrl: server.endpoint });
  });
  afterAll(async () => {
    process.env = before;
    await server?.stop();
    fs.rmSync(folder, { recursive: true });
  });

  test('what is put is listed, read at any position, and removed', async () => {
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

  test('a long file goes up in parts', async () => {
    const file = path.join(folder, 'long');
    const bytes = randomBytes((40 << 20) + 1);
    fs.writeFileSync(file, bytes);
    await storage.put('long', { file });
    expect((await storage.entry('long'))?.size).toBe(bytes.length);
    const source = await storage.open('long');
    const target = Buffer.alloc(bytes.length);
    await source.readAt(0, target);
    expect(target.equals(bytes)).toBe(true);
  });

  test('wrong keys are an error without the secret', async () => {
    process.env.AWS_SECRET_ACCESS_KEY = 'wrong-secret';
    const other = await openStorage('s3://bucket/', { endpointUrl: server.endpoint });
    const error: Error = await other.open('long').catch((error) => error);
    expect(error.name).toBe('RefusedError');
    expect(error.message).toMatch(/^s3:\/\/bucket\/long cannot be read: access is denied/);
    expect(error.message).not.toContain('wrong-secret');
  });
});

test('a location without a bucket, and an endpoint that is none, are refused', async () => {
  await expect(openStorage('s3:///x')).rejects.toThrow(/names no bucket/);
  await expect(openStorage('s3://bucket', { endpointUrl: 'host:9000' })).rejects.toThrow(/begins with https/);
});
