import { setTimeout as sleep } from 'node:timers/promises';
import type { ShardIndex, Source } from '@shardtool/format';
import { expect, test } from 'vitest';
import { ShardFiles } from './shard-files.js';

/** Longer than opening a local file takes, however busy the machine is. */
const SLOW_OPEN_MS = 10;

/** Shards without crop indexes, and the shards for which one was looked up. */
function shards(openMs: number, readAt: Source['readAt'] = async () => 0) {
  const asked: string[] = [];
  const files = new ShardFiles(
    Array.from({ length: 6 }, (_, shard) => ({
      name: `${shard}.tar`,
      path: `/none/${shard}.tar`,
      bytes: 1,
      samples: 1,
      async open(): Promise<Source> {
        await sleep(openMs);
        return { location: '', size: 1, readAt, close: async () => {} };
      },
      loadIndex: async () => ({}) as ShardIndex,
      loadParts: async () => ({}) as never,
      async findCropIndex() {
        asked.push(`${shard}.tar`);
        return null;
      },
    })),
  );
  const findAll = () => Promise.all(files.files.map((_, shard) => files.crops(shard)));
  return { files, asked, findAll };
}

test('on slow storage, no further crop index is looked up after the first is missing', async () => {
  const { files, asked, findAll } = shards(SLOW_OPEN_MS);
  await files.measure();
  expect(files.isSlow).toBe(true);
  expect(await findAll()).toEqual(Array(6).fill(null));
  expect(asked).toEqual(['0.tar']);
  await files.close();
});

test('on a local disk the crop index of each shard is looked up', async () => {
  const { files, asked, findAll } = shards(0);
  expect(await findAll()).toEqual(Array(6).fill(null));
  expect(asked).toHaveLength(6);
  await files.close();
});

test('a long read that fails rejects only after all its pieces have ended', async () => {
  let writing = 0;
  const { files } = shards(0, async (offset) => {
    if (offset === 0) throw new Error('no such byte');
    writing++;
    await sleep(5);
    writing--;
    return 0;
  });
  await expect(files.read(0, 0, new Uint8Array(10 << 20))).rejects.toThrow('no such byte');
  expect(writing).toBe(0);
  await files.close();
});
