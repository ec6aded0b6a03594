import { mkdtemp, open, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline, Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { Decompress } from 'fzstd';
import { DamagedShardError, UnsupportedShardError } from '../errors.js';
import { decompressSnappy } from '../parquet/snappy.js';
import { getVarint } from '../parquet/varint.js';
import type { Source } from '../source.js';
import { becameShorter } from './file-window.js';

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
  const file = await nameless();
  let size = 0;
  try {
    for await (const bytes of decompress(source)) {
      for (let done = 0; done < bytes.length; )
        done += (await file.write(bytes, done, bytes.length - done, size + done)).bytesWritten;
      size += bytes.length;
    }
  } catch (cause) {
    await file.close();
    if (cause instanceof DamagedShardError || cause instanceof UnsupportedShardError) throw cause;
    const message = `${shard}: it cannot be decompressed (${(cause as Error).message}); fetch or write it again.`;
    throw new DamagedShardError({ shard }, message, { cause });
  } finally {
    await source.close();
  }
  return {
    location: plainName(shard),
    size,
    readAt: async (offset, target) => {
      let read = 0;
      for (let more = -1; more !== 0 && read < target.length; read += more) {
        more = (await file.read(target, read, target.length - read, offset + read)).bytesRead;
      }
      return read;
    },
    close: () => file.close(),
  };
}

/** A new file that nobody else sees, and that is gone when it is closed. */
async function nameless() {
  const folder = await mkdtemp(path.join(tmpdir(), 'shardtool-'));
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

async function* unzstd(source: Source): AsyncGenerator<Uint8Array> {
  const made: Uint8Array[] = [];
  const codec = new Decompress((bytes) => made.push(bytes));
  for await (const piece of pieces(source)) {
    codec.push(piece);
    yield* made.splice(0);
  }
  codec.push(new Uint8Array(0), true);
  yield* made;
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
