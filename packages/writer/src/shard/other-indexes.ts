import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { basename, join } from 'node:path';
import { FileError, OptionError, writeAtomically } from '@shardtool/base';
import {
  checkDaliName,
  checkWidsName,
  DERIVED_SIDECARS,
  daliIndex,
  isOfLayout,
  type LayoutName,
  type ShardIndex,
  SIDECARS,
  sidecarPath,
  type WidsShard,
  widsIndex,
} from '@shardtool/format';
import type { OtherIndex } from '../options.js';

export const OTHER_INDEXES = DERIVED_SIDECARS.filter((name) => name !== 'index');

/** Small enough for the processor's cache. */
const PIECE_BYTES = 1 << 20;

/** Throws {@link OptionError} if the layout does not support one of the requested indexes. */
export function checkOtherIndexes(format: LayoutName, wanted: readonly OtherIndex[]): void {
  const ofTars = wanted.filter((index) => !isOfLayout(index, format));
  if (ofTars.length === 0) return;
  const message = `The index for ${ofTars.join(' and ')} requires tars, but the shards are ${format}; remove it, or use the format tar.`;
  throw new OptionError({}, message);
}

/** Throws EntryNameError for a file name in a tar that one of these indexes cannot represent. */
export function checkIndexName(wanted: readonly OtherIndex[], shard: string, key: string, name: string): void {
  if (wanted.includes('dali')) checkDaliName(shard, key, name);
  if (wanted.includes('wids')) checkWidsName(shard, key, name);
}

/** Hexadecimal md5 of a file, read from the page cache if the file was just written. */
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
 * Writes the DALI index of one tar next to it. `isOurs`: an existing file there was written by shardtool. Throws
 * EntryNameError for a name with white space, OptionError for a shard without samples, and {@link FileError}, also if a
 * different file of another tool is there.
 */
export async function writeDaliIndex(tar: string, index: ShardIndex, isOurs = true): Promise<void> {
  await writeOther(sidecarPath('dali', tar), daliIndex(index, basename(tar)), isOurs);
}

/**
 * Writes the DALI indexes of all tars of a folder, and the wids index. Throws OptionError if no sample is left, and
 * EntryNameError.
 */
export async function writeWidsIndex(folder: string, shards: readonly WidsShard[], isOurs = true): Promise<void> {
  await writeOther(join(folder, SIDECARS.wids.fileName()), widsIndex(shards), isOurs);
}

async function writeOther(file: string, text: string, isOurs: boolean): Promise<void> {
  if (!isOurs && existsSync(file)) {
    if (readFileSync(file, 'utf8') === text) return;
    const message = `${file} was not written by shardtool and has other contents, so it is not replaced; move it away and run this again.`;
    throw new FileError({ path: file }, message);
  }
  await writeAtomically(file, Buffer.from(text));
}

/** Facts about these shards from the wids index of a folder; shards that it does not list are read. */
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

/** Name and md5 of each shard in the index; empty if the index is missing or unreadable. */
export function widsSums(folder: string): [string, string][] {
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
