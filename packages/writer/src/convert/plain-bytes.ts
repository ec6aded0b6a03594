import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { UnsupportedShardError } from '@shardtool/base';
import { compressionOf, decompressedByCommand } from '@shardtool/format';

/** Enough bytes to recognise a compression. */
const HEAD_BYTES = 10;
/** RFC 1952, section 2.3.1: ID1 and ID2. */
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/**
 * Yields the bytes of a stream, decompressed if they start with the signature of gzip, xz or bzip2; for the latter two
 * the commands of this machine are run. `name` is the name of the stream for messages. Throws
 * {@link UnsupportedShardError} for zstd: its decoder takes files, and that of Node stops after the first frame.
 */
export async function* plainBytes(input: Readable, name: string): AsyncGenerator<Uint8Array> {
  const chunks: AsyncIterator<Buffer> = input[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    head = Buffer.concat([head, next.value]);
    if (head.length >= HEAD_BYTES) break;
  }
  const bytes = withHead(head, { [Symbol.asyncIterator]: () => chunks });
  const codec = compressionOf(head)?.codec;
  if (codec === 'zstd') {
    const message = `${name} is compressed with zstd, which is read from files only: give the file, or decompress it in a pipe ("zstd -dc FILE | shardtool convert - OUTPUT").`;
    throw new UnsupportedShardError({ shard: name }, message);
  }
  if (codec === 'xz' || codec === 'bz2') yield* decompressedByCommand(codec, bytes, name);
  else if (!head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) yield* bytes;
  // An error is reported by the consumer of the output.
  else yield* pipeline(Readable.from(bytes), createGunzip(), () => undefined);
}

async function* withHead(head: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head;
  yield* rest;
}
