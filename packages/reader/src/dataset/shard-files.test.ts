import { setTimeout as sleep } from 'node:timers/promises';
import type { ShardIndex, Source } from '@shardtool/format';
import { expect, test } from 'vitest';
import { ShardFiles } from './shard-files.js';

/** Longer than opening a file of this machine takes, however busy it is. */
const SLOW_OPEN_MS = 10;

/** Shards without crop indexes, and of which one was looked for. */
function shards(openMs: number) {
  const asked: string[] = [];
  const files = new ShardFiles(
    Array.from({ length: 6 }, (_, shard) => ({
      name: `${shard}.tar`,
      path: `/none/${shard}.tar`,
      bytes: 1,
      samples: 1,
      async open(): Promise<Source> {
        await sleep(openMs);
        return { location: '', size: 1, readAt: async () => 0, close: async () => {} };
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

test('where looking takes a while, nobody looks for another crop index when the first is missing', async () => {
  const { files, asked, findAll } = shards(SLOW_OPEN_MS);
  await files.measure();
  expect(files.isSlow).toBe(true);
  expect(await findAll()).toEqual(Array(6).fill(null));
  expect(asked).toEqual(['0.tar']);
  await files.close();
});

test('on this machine each shard may have a crop index or not', async () => {
  const { files, asked, findAll } = shards(0);
  expect(await findAll()).toEqual(Array(6).fill(null));
  expect(asked).toHaveLength(6);
  await files.close();
});
