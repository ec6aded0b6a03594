import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { CacheFolder } from '@shardtool/storage';
import { expect, test } from 'vitest';
import type { ShardFiles } from '../../dataset/shard-files.js';
import { CachedStore } from './cached-store.js';

/** A cache in which each piece is finished by another process after it was looked for, and before it is claimed. */
async function lateCache(folder: string): Promise<CacheFolder> {
  const [cache, other] = [await CacheFolder.open(folder, 1000), await CacheFolder.open(folder, 1000)];
  const claim = cache.claim.bind(cache);
  cache.claim = async (name, bytes, key) => {
    await other.write((await other.claim(name, bytes, key))!, new Uint8Array(bytes).fill(7), key);
    return claim(name, bytes, key);
  };
  return cache;
}

test('a piece that comes while it is looked for is not fetched once more', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'shardtool-late-'));
  try {
    let fetched = 0;
    const index = { samples: 1, offset: Float64Array.of(0), bytes: Float64Array.of(50) };
    const files = {
      files: [{ name: 'a.tar', path: '/a.tar', bytes: 100, samples: 1 }],
      index: async () => index,
      read: async (_shard: number, _offset: number, target: Uint8Array) => {
        fetched += target.length;
        target.fill(7);
      },
    } as unknown as ShardFiles;
    const store = new CachedStore({
      files,
      cache: await lateCache(folder),
      sources: [
        {
          firstShard: 0,
          unit: 'shard',
          blockSamples: 1,
          readers: null,
          selection: () => {
            throw new Error('it is not asked for');
          },
          passesAnEpoch: 1,
          positionOf: (samples) => samples,
        },
      ],
    });
    const target = new Uint8Array(40);
    await store.read(0, 10, target);
    await store.settle();
    expect(target).toEqual(new Uint8Array(40).fill(7));
    expect(fetched).toBe(0);
    expect(store.counts).toEqual({ hits: 1, hitBytes: 40 });
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});
