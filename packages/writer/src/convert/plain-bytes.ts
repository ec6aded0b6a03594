import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { UnsupportedShardError } from '@shardtool/base';

/** RFC 1952, section 2.3.1: ID1 and ID2. */
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/** RFC 8878, section 3.1.1. */
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/**
 * Yields the bytes of a stream, decompressed if they start with the gzip signature. `name` is the name of the stream for
 * messages. Throws {@link UnsupportedShardError} for zstd: its decoder takes files, and that of Node stops after the first
 * frame.
 */
export async function* plainBytes(input: Readable, name: string): AsyncGenerator<Buffer> {
  const chunks: AsyncIterator<Buffer> = input[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    head = Buffer.concat([head, next.value]);
    if (head.length >= ZSTD_MAGIC.length) break;
  }
  const bytes = withHead(head, { [Symbol.asyncIterator]: () => chunks });
  if (head.subarray(0, ZSTD_MAGIC.length).equals(ZSTD_MAGIC)) {
    const message = `${name} is compressed with zstd, which is read from files only: give the file, or decompress it in a pipe ("zstd -dc FILE | shardtool convert - OUTPUT").`;
    throw new UnsupportedShardError({ shard: name }, message);
  }
  if (!head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) yield* bytes;
  // An error is reported by the consumer of the output.
  else yield* pipeline(Readable.from(bytes), createGunzip(), () => undefined);
}

async function* withHead(head: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head;
  yield* rest;
}
