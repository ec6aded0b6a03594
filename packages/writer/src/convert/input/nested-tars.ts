import { Readable } from 'node:stream';
import { UnsupportedShardError } from '@shardtool/base';
import { openSource, type Source, type StreamedFile, scanEntries, streamFiles } from '@shardtool/format';
import { isRemote, readAhead, type StorageOptions } from '@shardtool/storage';

/** Bytes per read. */
const PIECE_BYTES = 1 << 20;

/** A tar of tars, as ImageNet is distributed (ILSVRC2012_img_train.tar): one tar per class, named after the class. */
export interface NestedTars {
  readonly bytes: Readable;
  /** Names of the inner tars without their extension, in order. */
  readonly folders: readonly string[];
}

/**
 * Opens a file that contains only tars; null for any other file. Only headers are read to find out, for most tars the
 * first one. Throws DamagedShardError, UnsupportedEntryError, EntryNameError, FileError.
 */
export async function openNestedTars(location: string, storage?: StorageOptions): Promise<NestedTars | null> {
  const folders = await innerTars(location, storage);
  if (folders === null) return null;
  return { bytes: streamOf(location, storage), folders };
}

/** Reads a file from beginning to end. */
export function streamOf(location: string, storage?: StorageOptions): Readable {
  return Readable.from(piecesOf(location, storage), { objectMode: false, highWaterMark: PIECE_BYTES });
}

async function innerTars(location: string, storage: StorageOptions | undefined): Promise<readonly string[] | null> {
  const source = await open(location, storage);
  const folders: string[] = [];
  try {
    for await (const entries of scanEntries(source)) {
      for (const { name, link } of entries) {
        if (link !== undefined) continue;
        const folder = folderOf(name);
        if (folder === null) return null;
        folders.push(folder);
      }
    }
  } catch (error) {
    // An error in another kind of file is reported by its own reader.
    if (folders.length > 0) throw error;
  } finally {
    await source.close();
  }
  return folders.length === 0 ? null : folders;
}

async function* piecesOf(location: string, storage: StorageOptions | undefined): AsyncGenerator<Buffer> {
  const source = await open(location, storage);
  try {
    for (let at = 0; at < source.size; ) {
      const piece = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, source.size - at));
      const read = await source.readAt(at, piece);
      if (read === 0) return;
      at += read;
      yield piece.subarray(0, read);
    }
  } finally {
    await source.close();
  }
}

async function open(location: string, storage: StorageOptions | undefined): Promise<Source> {
  const source = await openSource(location, undefined, storage);
  return isRemote(location) ? readAhead(source) : source;
}

/**
 * Yields the files of a tar that is read as a stream. If its first file is a tar, yields the files of all inner tars,
 * each in a folder named after its tar. Throws DamagedShardError, TruncatedShardError, UnsupportedEntryError or
 * EntryNameError for an invalid archive, and {@link UnsupportedShardError} for other files next to inner tars.
 */
export async function* streamNested(chunks: AsyncIterable<Uint8Array>, shard: string): AsyncGenerator<StreamedFile> {
  let isNested: boolean | null = null;
  for await (const file of streamFiles(chunks, shard)) {
    if (file.link !== undefined) {
      yield file;
      continue;
    }
    const folder = folderOf(file.name);
    isNested ??= folder !== null;
    if (!isNested) yield file;
    else if (folder === null) throw mixed(shard, file.name);
    else {
      for await (const inner of streamFiles(file.pieces, `${shard}, in it ${file.name}`)) {
        yield { ...inner, name: `${folder}/${inner.name.startsWith('./') ? inner.name.slice(2) : inner.name}` };
      }
    }
  }
}

/** Folder name for the samples of an inner tar; null if the name is not that of a tar. */
function folderOf(name: string): string | null {
  return /([^/]+)\.tar$/i.exec(name)?.[1] ?? null;
}

function mixed(shard: string, name: string): UnsupportedShardError {
  const message = `${shard}: its first file is a tar, as in a tar of tars, but it also contains "${name}", which is not a tar; extract it, and convert or pack its contents.`;
  return new UnsupportedShardError({ shard }, message);
}
