import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
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

/** What the index for wids of a folder says of these shards; where it says nothing, the shard is read. */
export function readWidsIndex(
  folder: string,
  shards: readonly { readonly file: string; readonly samples: number; readonly bytes: number }[],
): WidsShard[] {
  const known = new Map(widsSums(folder));
  return shards.map(({ file, samples, bytes }) => ({
    file,
    samples,
    bytes,
    md5: known.get(file) ?? md5OfFile(join(folder, file)),
  }));
}

/** Name and md5 of each shard that the index has; none where there is no index, or one that cannot be read. */
function widsSums(folder: string): [string, string][] {
  try {
    const { shardlist } = JSON.parse(readFileSync(join(folder, WIDS_INDEX_FILE), 'utf8'));
    return (shardlist as { url: string; md5sum: string }[]).map(({ url, md5sum }) => [url, md5sum]);
  } catch {
    return [];
  }
}

function md5OfFile(path: string): string {
  const fd = openSync(path, 'r');
  try {
    return md5Of(fd);
  } finally {
    closeSync(fd);
  }
}
