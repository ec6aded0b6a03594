import fs, { cpSync, mkdirSync, promises, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import { convert, pack, repair } from '@shardtool/writer';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { smallImages } from './datasets.js';
import { newFolder } from './pack-workbench.js';

/** The flushed paths, and the new names of renames, in order. */
const events: string[] = [];
let undo = (): void => undefined;

/** Records each flush of a file or folder, and each rename. Only on Linux can the path of a file descriptor be looked up. */
beforeAll(() => {
  const { fsync } = fs;
  const { rename, link } = promises;
  const noted = (fd: number, done: (error: NodeJS.ErrnoException | null) => void) =>
    fsync(fd, (error) => {
      events.push(`flush ${readlinkSync(`/proc/self/fd/${fd}`)}`);
      done(error);
    });
  Object.assign(fs, { fsync: noted });
  const noting =
    (give: typeof rename) => async (from: Parameters<typeof rename>[0], to: Parameters<typeof rename>[1]) => {
      events.push(`name ${to}`);
      await give(from, to);
    };
  Object.assign(promises, { rename: noting(rename), link: noting(link) });
  syncBuiltinESMExports();
  undo = () => {
    Object.assign(fs, { fsync });
    Object.assign(promises, { rename, link });
    syncBuiltinESMExports();
  };
});
afterAll(() => undo());
beforeEach(() => {
  events.length = 0;
});

/** The paths that were flushed before a file got its name. */
function flushedBefore(file: string): string[] {
  const end = events.lastIndexOf(`name ${file}`);
  expect(end, `${file} got its name`).toBeGreaterThan(0);
  return events.slice(0, end).flatMap((event) => (event.startsWith('flush ') ? [event.slice(6)] : []));
}

const isLinux = process.platform === 'linux';

test.runIf(isLinux)('a dataset is committed only after the folders of all its shards are flushed to disk', async () => {
  const images = await smallImages({ samples: 6 });
  const packed = newFolder();
  await pack(images, packed, { format: 'lmdb', maxShardSamples: 2, workers: 1 });
  const before = flushedBefore(path.join(packed, 'dataset.json'));
  for (const shard of ['000000.lmdb', '000001.lmdb', '000002.lmdb']) expect(before).toContain(path.join(packed, shard));
  expect(before).toContain(packed);
  const table = newFolder();
  await convert(packed, table, { format: 'parquet', workers: 1 });
  const beforeTable = flushedBefore(path.join(table, 'dataset.json'));
  expect(beforeTable).toEqual(expect.arrayContaining([path.join(table, 'data'), table]));
});

test.runIf(isLinux)(
  'the shards that a repair replaces are flushed to quarantine before the dataset is committed again',
  async () => {
    const images = await smallImages({ samples: 4 });
    const shards = newFolder();
    await pack(images, shards, { maxShardSamples: 2, workers: 1 });
    const damaged = path.join(newFolder(), 'damaged');
    mkdirSync(path.dirname(damaged), { recursive: true });
    cpSync(shards, damaged, { recursive: true });
    const bytes = readFileSync(path.join(damaged, '000000.tar'));
    bytes[600]! ^= 1;
    writeFileSync(path.join(damaged, '000000.tar'), bytes);
    events.length = 0;
    await repair(damaged, { source: images, workers: 1 });
    const before = flushedBefore(path.join(damaged, 'dataset.json'));
    expect(before).toEqual(
      expect.arrayContaining([path.join(damaged, 'quarantine'), path.join(damaged, 'repair.part')]),
    );
  },
);

test.runIf(isLinux)('a mixture that merge writes is flushed to disk, with its name', async () => {
  const shards = newFolder();
  await pack(await smallImages({ samples: 2 }), shards, { workers: 1 });
  const output = path.join(newFolder(), 'both.json');
  mkdirSync(path.dirname(output), { recursive: true });
  events.length = 0;
  expect(await shardtool('merge', shards, '--output', output)).toMatchObject({ code: 0 });
  expect(flushedBefore(output).some((file) => file.startsWith(output))).toBe(true);
  expect(events.at(-1)).toBe(`flush ${path.dirname(output)}`);
});
