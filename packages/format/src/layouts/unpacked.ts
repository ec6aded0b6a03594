import { readSync } from 'node:fs';
import { mkdtemp, open, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline, Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { DamagedShardError, FileError, ShardtoolError, UnsupportedShardError } from '@shardtool/base';
import { decompressSnappy } from '../parquet/snappy.js';
import { getVarint } from '../parquet/varint.js';
import type { Source } from '../source.js';
import { becameShorter } from './file-window.js';
import { decompressZstdPieces, loadZstd } from './zstd.js';

/** Read at once. */
const PIECE_BYTES = 1 << 20;
/** What has no pieces of its own is held as a whole. */
const MOST_WHOLE_BYTES = 1 << 30;

/** How a file as a whole may be compressed, by the ending of its name. */
const WHOLE_CODECS: Readonly<Record<string, (source: Source) => AsyncIterable<Uint8Array>>> = {
  gz: (source) => through(source, createGunzip()),
  br: (source) => through(source, createBrotliDecompress()),
  zstd: unzstd,
  snappy: unsnappy,
};

/** The endings of {@link unpacked}, with the level that mosaicml-streaming may write behind one: `.zstd:7`. */
const ENDING = /\.(gz|br|zstd|snappy|bz2)(?::\d+)?$/;

/** The name of a file without the ending that says how it is compressed. */
export function plainName(name: string): string {
  return name.replace(ENDING, '');
}

/**
 * A file as it was before it was compressed, in a file without a name in the system's folder for temporary ones: memory is bounded,
 * whatever the file makes. `codec`: where the name does not say it. Owns `source`, which is closed. Throws
 * {@link UnsupportedShardError} for codecs that are not known, {@link DamagedShardError}.
 */
export async function unpacked(source: Source, codec = ENDING.exec(source.location)?.[1]): Promise<Source> {
  const { location: shard } = source;
  const decompress = codec === undefined ? undefined : WHOLE_CODECS[codec];
  if (decompress === undefined) {
    await source.close();
    const message = `${shard}: it is compressed by ${codec}, which is not read; decompress it first.`;
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

/** The system has no room for a file. */
const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'ENOENT']);

/**
 * A file that is far, in a file without a name on this machine, for who goes through it more than once: it is fetched once.
 * Where there is no room for it, `source` itself is given, which else is closed.
 */
export async function fetched(source: Source): Promise<Source> {
  let here: Source;
  try {
    here = await copied(source);
  } catch (error) {
    const { code, cause } = error as NodeJS.ErrnoException;
    const codes = [code, (cause as NodeJS.ErrnoException | undefined)?.code];
    if (codes.some((one) => one !== undefined && NO_ROOM.has(one))) return source;
    throw error;
  }
  await source.close();
  return here;
}

function copied(source: Source): Promise<Source> {
  return spooled(source, source.location, () => pieces(source));
}

/** What comes, in a file without a name, as if it lay at `location`. It is asked for when somebody is there to hear of its errors. */
async function spooled(
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
    readAt: async (offset, target) => {
      let read = 0;
      for (let more = -1; more !== 0 && read < target.length; read += more) {
        more = (await file.read(target, read, target.length - read, offset + read)).bytesRead;
      }
      return read;
    },
    readNow: (offset, target) => readSync(file.fd, target, 0, target.length, offset),
    close: () => file.close(),
  };
}

/** A new file that nobody else sees, and that is gone when it is closed. */
async function nameless() {
  const folder = await mkdtemp(path.join(tmpdir(), 'shardtool-')).catch((cause: Error) => {
    const message = `No temporary file can be made (${cause.message}); set TMPDIR to a folder that can be written.`;
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
  // Its error is met by whoever reads what comes out.
  return pipeline(Readable.from(pieces(source)), codec, () => undefined);
}

/** The decoder takes what is there at once: a file that is far comes into a file without a name first. */
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

/** One block: it says how long it is, and has no pieces. */
async function* unsnappy(source: Source): AsyncGenerator<Uint8Array> {
  const { location: shard, size } = source;
  const whole = new Uint8Array(Math.min(size, MOST_WHOLE_BYTES));
  const read = await source.readAt(0, whole);
  const bytes = read < size ? -1 : getVarint({ bytes: whole, at: 0 });
  if (bytes < 0 || bytes > MOST_WHOLE_BYTES) {
    throw new UnsupportedShardError(
      { shard },
      `${shard}: it is a block of snappy of more than 1 GiB; decompress it first.`,
    );
  }
  yield decompressSnappy(whole, bytes);
}
