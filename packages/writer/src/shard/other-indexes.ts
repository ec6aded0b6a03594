import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { basename, join } from 'node:path';
import { FileError, OptionError, writeAtomically } from '@shardtool/base';
import {
  checkDaliName,
  checkWidsName,
  DERIVED_SIDECARS,
  type DerivedSidecar,
  daliIndex,
  isOfLayout,
  type LayoutName,
  type ShardIndex,
  SIDECARS,
  sidecarPath,
  type WidsShard,
  widsIndex,
} from '@shardtool/format';

/** What is written beside shards where it is asked for: all but their own index. */
export type OtherIndex = Exclude<DerivedSidecar, 'index'>;

export const OTHER_INDEXES = DERIVED_SIDECARS.filter((name) => name !== 'index');

/** Short enough to stay in the processor's cache. */
const PIECE_BYTES = 1 << 20;

/** Throws {@link OptionError} where indexes are asked for that are none of this layout. */
export function checkOtherIndexes(format: LayoutName, wanted: readonly OtherIndex[]): void {
  const ofTars = wanted.filter((index) => !isOfLayout(index, format));
  if (ofTars.length === 0) return;
  const message = `The index for ${ofTars.join(' and ')} is one of tars, and the shards are ${format}; leave it out, or use the format tar.`;
  throw new OptionError({}, message);
}

/** Throws EntryNameError for a file that is to go into a tar and that one of these indexes could not name. */
export function checkIndexName(wanted: readonly OtherIndex[], shard: string, key: string, name: string): void {
  if (wanted.includes('dali')) checkDaliName(shard, key, name);
  if (wanted.includes('wids')) checkWidsName(shard, key, name);
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

/**
 * Writes the index of one tar for DALI, beside it. `isOurs`: what lies there was written by shardtool. Throws
 * EntryNameError for a name with white space, OptionError for a shard without samples, and {@link FileError}, also where something
 * else lies there that is not the same.
 */
export async function writeDaliIndex(tar: string, index: ShardIndex, isOurs = true): Promise<void> {
  await writeOther(sidecarPath('dali', tar), daliIndex(index, basename(tar)), isOurs);
}

/** The same for all tars of a folder, and wids. Throws OptionError where no sample is left, EntryNameError. */
export async function writeWidsIndex(folder: string, shards: readonly WidsShard[], isOurs = true): Promise<void> {
  await writeOther(join(folder, SIDECARS.wids.fileName()), widsIndex(shards), isOurs);
}

async function writeOther(file: string, text: string, isOurs: boolean): Promise<void> {
  if (!isOurs && existsSync(file)) {
    if (readFileSync(file, 'utf8') === text) return;
    const message = `${file} was not written by shardtool and says something else, so it stays; move it away to have it made anew.`;
    throw new FileError({ path: file }, message);
  }
  await writeAtomically(file, Buffer.from(text));
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
    const { shardlist } = JSON.parse(readFileSync(join(folder, SIDECARS.wids.fileName()), 'utf8'));
    return (shardlist as { url: string; md5sum: string }[]).map(({ url, md5sum }) => [url, md5sum]);
  } catch {
    return [];
  }
}

export function md5OfFile(path: string): string {
  const fd = openSync(path, 'r');
  try {
    return md5Of(fd);
  } finally {
    closeSync(fd);
  }
}
