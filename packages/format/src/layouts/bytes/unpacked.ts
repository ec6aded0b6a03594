import { readSync } from 'node:fs';
import { mkdtemp, open, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline, Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import {
  DamagedShardError,
  FileError,
  readFully,
  reasonOf,
  ShardtoolError,
  systemCodeOf,
  UnsupportedShardError,
} from '@shardtool/base';
import { decompressSnappy } from '../../parquet/snappy.js';
import { getVarint } from '../../parquet/varint.js';
import type { Source } from '../../source.js';
import { decompressedByCommand } from './by-command.js';
import { becameShorter } from './file-window.js';
import { decompressZstdPieces, loadZstd } from './zstd.js';

/** Size of one read. */
const PIECE_BYTES = 1 << 20;
/** Maximum size of data that has to be decompressed as a whole. */
const MOST_WHOLE_BYTES = 1 << 30;

/** Compressions of whole files, by the extension of the name. */
const WHOLE_CODECS = {
  gz: (source: Source) => through(source, createGunzip()),
  br: (source: Source) => through(source, createBrotliDecompress()),
  zstd: unzstd,
  snappy: unsnappy,
  xz: (source: Source) => decompressedByCommand('xz', pieces(source), source.location),
  bz2: (source: Source) => decompressedByCommand('bz2', pieces(source), source.location),
} satisfies Readonly<Record<string, (source: Source) => AsyncIterable<Uint8Array>>>;

export type WholeCodec = keyof typeof WHOLE_CODECS;

/** The extensions of {@link unpacked}, with the level that mosaicml-streaming may append: `.zstd:7`. */
const ENDING = /\.(gz|br|zstd|snappy|bz2|xz)(?::\d+)?$/;

/** The name of a file without its compression extension. */
export function plainName(name: string): string {
  return name.replace(ENDING, '');
}

/**
 * Decompresses a file into an unnamed file in the system's temporary folder, so memory stays bounded whatever the size.
 * `codec` is needed if the name does not show it. Owns `source`, which is closed. Throws {@link UnsupportedShardError}
 * for unknown codecs, {@link DamagedShardError}.
 */
export async function unpacked(source: Source, codec = ENDING.exec(source.location)?.[1]): Promise<Source> {
  const { location: shard } = source;
  const decompress = isWholeCodec(codec) ? WHOLE_CODECS[codec] : undefined;
  if (decompress === undefined) {
    await source.close();
    const message = `${shard}: it is compressed with ${codec}, which shardtool does not read; decompress it first.`;
    throw new UnsupportedShardError({ shard }, message);
  }
  try {
    return await spooled(source, plainName(shard), () => decompress(source));
  } catch (cause) {
    if (cause instanceof ShardtoolError) throw cause;
    const message = `${shard}: it cannot be decompressed (${(cause as Error).message}); fetch or write it again.`;
    throw new DamagedShardError({ shard }, message, { cause });
  } finally {
    await source.close();
  }
}

function isWholeCodec(codec: string | undefined): codec is WholeCodec {
  return codec !== undefined && Object.hasOwn(WHOLE_CODECS, codec);
}

/** The bytes of a compressed file, decompressed as they are read. Owns `source`, which is closed. Throws the error of the codec. */
export async function* decompressed(source: Source, codec: WholeCodec): AsyncGenerator<Uint8Array> {
  try {
    yield* WHOLE_CODECS[codec](source);
  } finally {
    await source.close();
  }
}

/** Error codes that mean that the system has no room for a temporary file. */
const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'ENOENT']);

/**
 * Copies a remote file into an unnamed local file, for callers that read it more than once: it is fetched once. If
 * there is no room for it, returns `source` itself, which is otherwise closed.
 */
export async function fetched(source: Source): Promise<Source> {
  let here: Source;
  try {
    here = await copied(source);
  } catch (error) {
    const { cause } = error as Error;
    const codes = [systemCodeOf(error), cause === undefined ? undefined : systemCodeOf(cause)];
    if (codes.some((one) => one !== undefined && NO_ROOM.has(one))) return source;
    throw error;
  }
  await source.close();
  return here;
}

function copied(source: Source): Promise<Source> {
  return spooled(source, source.location, () => pieces(source));
}

/**
 * Writes a stream into an unnamed file, presented at `location`. The stream starts only when its errors can be handled.
 */
export async function spooled(
  { sibling }: Source,
  location: string,
  content: () => AsyncIterable<Uint8Array>,
): Promise<Source> {
  const file = await nameless();
  let size = 0;
  try {
    for await (const bytes of content()) {
      for (let done = 0; done < bytes.length; )
        done += (await file.write(bytes, done, bytes.length - done, size + done)).bytesWritten;
      size += bytes.length;
    }
  } catch (error) {
    await file.close();
    throw error;
  }
  return {
    location,
    size,
    ...(sibling && { sibling }),
    readAt: (offset, target) => readFully(file, target, offset),
    readNow: (offset, target) => readSync(file.fd, target, 0, target.length, offset),
    close: () => file.close(),
  };
}

/** A new unnamed file that is gone when it is closed. */
async function nameless() {
  const folder = await mkdtemp(path.join(tmpdir(), 'shardtool-')).catch((cause: Error) => {
    const message = `shardtool cannot create a temporary file: ${reasonOf(cause)}; set TMPDIR to a writable folder.`;
    throw new FileError({ path: tmpdir() }, message, { cause });
  });
  const name = path.join(folder, 'unpacked');
  const file = await open(name, 'wx+', 0o600);
  await rm(name);
  await rmdir(folder);
  return file;
}

async function* pieces(source: Source): AsyncGenerator<Buffer> {
  for (let at = 0; at < source.size; at += PIECE_BYTES) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, source.size - at));
    const read = await source.readAt(at, piece);
    if (read < piece.length) throw becameShorter(source.location, at + read);
    yield piece;
  }
}

function through(source: Source, codec: Transform): AsyncIterable<Uint8Array> {
  // The reader of the output receives the error.
  return pipeline(Readable.from(pieces(source)), codec, () => undefined);
}

/** The decoder needs all input synchronously, so a remote file is first copied to an unnamed local file. */
async function* unzstd(source: Source): AsyncGenerator<Uint8Array> {
  await loadZstd();
  const near = source.readNow === undefined ? await copied(source) : source;
  try {
    yield* decompressZstdPieces(piecesNow(near));
  } finally {
    if (near !== source) await near.close();
  }
}

function* piecesNow(source: Source): Generator<Uint8Array> {
  const piece = Buffer.allocUnsafe(PIECE_BYTES);
  for (let at = 0; at < source.size; ) {
    const read = source.readNow!(at, piece.subarray(0, Math.min(PIECE_BYTES, source.size - at)));
    if (read === 0) throw becameShorter(source.location, at);
    at += read;
    yield piece.subarray(0, read);
  }
}

/** Decodes one block. It has a length and no pieces. */
async function* unsnappy(source: Source): AsyncGenerator<Uint8Array> {
  const { location: shard, size } = source;
  const whole = new Uint8Array(Math.min(size, MOST_WHOLE_BYTES));
  const read = await source.readAt(0, whole);
  const bytes = read < size ? -1 : getVarint({ bytes: whole, at: 0 });
  if (bytes < 0 || bytes > MOST_WHOLE_BYTES) {
    throw new UnsupportedShardError(
      { shard },
      `${shard}: it is a single snappy block of more than 1 GiB; decompress it first.`,
    );
  }
  yield decompressSnappy(whole, bytes);
}
