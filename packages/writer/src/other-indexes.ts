import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import { join } from 'node:path';
import {
  daliIndex,
  OptionError,
  type ShardIndex,
  type ShardLayout,
  WIDS_INDEX_FILE,
  widsIndex,
  writeDurably,
} from '@shardtool/format';
import type { ShardRecord } from './new-shard.js';
import type { ShardPaths } from './shard-paths.js';

/** An index that another loader wants beside tars: of webdataset's wids, or of NVIDIA DALI. */
export type OtherIndex = 'wids' | 'dali';

/** Short enough to stay in the processor's cache. */
const PIECE_BYTES = 1 << 20;

/** Throws {@link OptionError} where indexes are asked for that are none of this layout. */
export function checkOtherIndexes(layout: ShardLayout, wanted: readonly OtherIndex[]): void {
  if (wanted.length === 0 || layout.name === 'tar') return;
  const message = `The index for ${wanted.join(' and ')} is one of tars, and the shards are ${layout.name}; leave it out, or use the format tar.`;
  throw new OptionError({}, message);
}

/** md5 of a file that was just written, in hexadecimal: from the page cache. */
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

/** Writes the index of one tar for DALI. Throws what {@link daliIndex} throws, and {@link FileError}. */
export async function writeDaliIndex(output: string, paths: ShardPaths, index: ShardIndex): Promise<void> {
  await writeDurably(join(output, paths.daliIndex), Buffer.from(daliIndex(index, paths.file)));
}

/** Writes the index of all tars for wids. Throws what {@link widsIndex} throws, and {@link FileError}. */
export async function writeWidsIndex(output: string, shards: readonly ShardRecord[]): Promise<void> {
  const named = shards.map(({ file, samples, bytes, md5 }) => ({ file, samples, bytes, md5: md5! }));
  await writeDurably(join(output, WIDS_INDEX_FILE), Buffer.from(widsIndex(named)));
}
