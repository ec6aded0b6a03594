import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  daliIndex,
  daliIndexPath,
  type LayoutName,
  OptionError,
  type ShardIndex,
  WIDS_INDEX_FILE,
  type WidsShard,
  widsIndex,
  writeDurably,
} from '@shardtool/format';

/** An index that another loader wants beside tars: of webdataset's wids, or of NVIDIA DALI. */
export type OtherIndex = 'wids' | 'dali';

/** Short enough to stay in the processor's cache. */
const PIECE_BYTES = 1 << 20;

/** Throws {@link OptionError} where indexes are asked for that are none of this layout. */
export function checkOtherIndexes(format: LayoutName, wanted: readonly OtherIndex[]): void {
  if (wanted.length === 0 || format === 'tar') return;
  const message = `The index for ${wanted.join(' and ')} is one of tars, and the shards are ${format}; leave it out, or use the format tar.`;
  throw new OptionError({}, message);
}

/** md5 of a file in hexadecimal, from the page cache if it was just written. */
export function md5Of(fd: number): string {
  const hash = createHash('md5');
  const piece = new Uint8Array(PIECE_BYTES);
  for (let at = 0; ; ) {
    const bytes = readSync(fd, piece, 0, piece.length, at);
    if (bytes === 0) return hash.digest('hex');
    hash.update(piece.subarray(0, bytes));
    at += bytes;
  }
}

/** Writes the index of one tar for DALI, beside it. Throws what {@link daliIndex} throws, and {@link FileError}. */
export async function writeDaliIndex(tar: string, index: ShardIndex): Promise<void> {
  await writeDurably(daliIndexPath(tar), Buffer.from(daliIndex(index, basename(tar))));
}

/** Writes the index of all tars of a folder for wids. Throws what {@link widsIndex} throws, and {@link FileError}. */
export async function writeWidsIndex(folder: string, shards: readonly WidsShard[]): Promise<void> {
  await writeDurably(join(folder, WIDS_INDEX_FILE), Buffer.from(widsIndex(shards)));
}
