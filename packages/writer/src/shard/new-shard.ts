import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtomicFile, flushData, makeFolder } from '@shardtool/base';
import {
  type ColumnType,
  checkWidsNames,
  IndexRows,
  type OutputLayout,
  type ShardIndex,
  type ShardWriter,
  sidecarPath,
  writeShardIndex,
} from '@shardtool/format';
import { asDiskFull } from '../disk-full.js';
import { OutputLockedError } from '../errors.js';
import { checkHeld, type HeldOutput } from '../folder-lock.js';
import type { OtherIndex } from '../options.js';
import { type CropIndexCounts, readerOf, writeCropIndex } from './crop-index.js';
import { md5Of, writeDaliIndex } from './other-indexes.js';
import { readBack } from './read-back.js';
import { shardPaths } from './shard-paths.js';

/** What all new shards of a dataset have in common. */
export interface ShardTarget {
  /** Folder of the dataset. */
  readonly output: string;
  readonly layout: OutputLayout;
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  /** Indexes for other loaders, in addition to the shard's own. */
  readonly otherIndexes: readonly OtherIndex[];
  /** Limit for all fields of a sample together. */
  readonly maxSampleBytes: number;
  /** The lock of the output folder; absent if it is a folder that no other process knows. */
  readonly lock?: HeldOutput | undefined;
}

/** Facts about a written shard, from which dataset.json is made. */
export interface ShardRecord {
  /** Path below the output folder. */
  readonly file: string;
  readonly bytes: number;
  readonly crc32: number;
  /** Hexadecimal; null unless the index for wids is requested. */
  readonly md5: string | null;
  readonly samples: number;
  /** Size of the largest sample with its headers, in bytes. */
  readonly maxSampleBytes: number;
  /** Number of samples of each class, by class number. */
  readonly classCounts: ReadonlyMap<number, number>;
  /** Number of samples that have each field. */
  readonly fieldCounts: ReadonlyMap<string, number>;
  /** Number of samples that webdataset skips in this tar: see {@link WEBDATASET_META}. Absent if there are none. */
  readonly metaSamples?: number;
  /** Contents of its crop index, if it has one. */
  readonly crops?: CropIndexCounts;
}

/** Keys of entries that webdataset skips when it reads a tar (`skip_meta` in its tariterators.py). */
const WEBDATASET_META = /^__[^/]*__\//;

/** Writes the samples of a shard and their rows, and returns the label columns of the rows. */
export type FillShard = (
  writer: ShardWriter,
  rows: IndexRows,
) => ShardIndex['columns'] | Promise<ShardIndex['columns']>;

/**
 * Creates the shard called `stem` with its indexes: each file under a temporary name, flushed, then renamed. `capacity`
 * is the expected number of samples, if known. `whenFilled` is called when only the disk is waited for, so that another
 * shard can start. Throws {@link DiskFullError}, {@link FileError}, {@link WriteCheckError} if the finished file
 * differs from what was read, and the errors of `fill` unchanged. After an error nothing of the shard is left.
 */
export async function createShard(
  target: ShardTarget,
  stem: string,
  capacity: number,
  fill: FillShard,
  whenFilled: () => unknown = () => undefined,
): Promise<ShardRecord> {
  const { output, layout, columnTypes, otherIndexes } = target;
  const paths = shardPaths(layout, stem);
  const { file, folder } = paths;
  const path = join(output, file);
  let written: AtomicFile | undefined;
  try {
    if (folder !== null) makeFolder(join(output, folder));
    if (layout.shardFolder !== undefined) makeFolder(join(output, layout.shardFolder));
    written = await AtomicFile.create(path, target.lock?.token);
    const { handle } = written;
    const rows = new IndexRows(capacity);
    const writer = layout.createWriter(handle.fd, file, target.maxSampleBytes, capacity);
    const columns = await fill(writer, rows);
    const { bytes, crc32, ...places } = writer.finish();
    const flushed = flushData(handle);
    // An earlier failure takes precedence.
    flushed.catch(() => undefined);
    const index = { ...rows.toIndex(places), columns, columnTypes };
    const indexed = writeShardIndex(join(output, paths.index), index);
    if (otherIndexes.length === 0) whenFilled();
    await indexed;
    const { fd } = handle;
    await readBack({
      name: file,
      path: written.temporary,
      indexPath: join(output, paths.index),
      layout,
      fd,
      bytes,
      crc32,
    });
    if (otherIndexes.includes('dali')) await writeDaliIndex(path, index);
    if (otherIndexes.includes('wids')) checkWidsNames(index, file);
    const crops = otherIndexes.includes('crops')
      ? { crops: await writeCropIndex(sidecarPath('crops', path), index, readerOf(fd)) }
      : {};
    const md5 = otherIndexes.includes('wids') ? md5Of(fd) : null;
    await flushed;
    if (target.lock !== undefined) checkHeld(target.lock);
    await written.place({ flush: false });
    const maxSampleBytes = places.sampleBytes.reduce((max, length) => Math.max(max, length), 0);
    const { samples, classCounts, fieldCounts } = rows;
    const metaSamples = layout.name === 'tar' ? index.key.filter((key) => WEBDATASET_META.test(key)).length : 0;
    const meta = metaSamples > 0 ? { metaSamples } : {};
    return { file, bytes, crc32, md5, samples, maxSampleBytes, classCounts, fieldCounts, ...crops, ...meta };
  } catch (error) {
    await written?.abandon();
    // Files next to the shard may belong to the process that holds the lock now.
    if (error instanceof OutputLockedError) throw error;
    for (const sidecar of paths.sidecars) rmSync(join(output, sidecar), { force: true });
    if (folder !== null) rmSync(join(output, folder), { force: true, recursive: true });
    throw asDiskFull(error, output);
  }
}
