import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { LoadedIndex } from '@shardtool/format';
import { CacheFolder } from '@shardtool/storage';
import { expect, test } from 'vitest';
import type { ShardFile } from '../../dataset/shards/shard-file.js';
import { CachedBytes } from './cached-bytes.js';

/** A cache in which another process finishes each piece between its look-up and its claim. */
async function lateCache(folder: string): Promise<CacheFolder> {
  const [cache, other] = [await CacheFolder.open(folder, 1000), await CacheFolder.open(folder, 1000)];
  const claim = cache.claim.bind(cache);
  cache.claim = async (name, bytes, key) => {
    await other.write((await other.claim(name, bytes, key))!, new Uint8Array(bytes).fill(7), key);
    return claim(name, bytes, key);
  };
  return cache;
}

test('a piece that another process stores in the meantime is not fetched again', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'shardtool-late-'));
  try {
    let fetched = 0;
    const index = { samples: 1, offset: Float64Array.of(0), bytes: Float64Array.of(50) } as unknown as LoadedIndex;
    const store = {
      bytes: {
        mayDiffer: false,
        read: async (_range: unknown, target: Uint8Array) => {
          fetched += target.length;
          target.fill(7);
        },
      },
      indexes: { index: async () => index, checkSizes: () => {} },
    };
    const cached = new CachedBytes({
      store,
      files: [{ name: 'a.tar', path: '/a.tar', bytes: 100, samples: 1 } as ShardFile],
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
    await cached.read({ shard: 0, file: 'shard', offset: 10 }, target);
    await cached.settle();
    expect(target).toEqual(new Uint8Array(40).fill(7));
    expect(fetched).toBe(0);
    expect(cached.counts).toEqual({ hits: 1, hitBytes: 40 });
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});
