import { pipeline, Readable, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { UnsupportedShardError } from '@shardtool/base';

/** RFC 1952, section 2.3.1: ID1 and ID2. */
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/** RFC 8878, section 3.1.1. */
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/**
 * Yields the bytes of a stream, decompressed if they start with the signature of gzip or zstd. `name` is the name of the
 * stream for messages. Throws {@link UnsupportedShardError} for zstd in a version of Node without it.
 */
export async function* plainBytes(input: Readable, name: string): AsyncGenerator<Buffer> {
  const chunks: AsyncIterator<Buffer> = input[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    head = Buffer.concat([head, next.value]);
    if (head.length >= ZSTD_MAGIC.length) break;
  }
  const bytes = withHead(head, { [Symbol.asyncIterator]: () => chunks });
  const codec = codecOf(head, name);
  if (codec === null) yield* bytes;
  // An error is reported by the consumer of the output.
  else yield* pipeline(Readable.from(bytes), codec, () => undefined);
}

function codecOf(head: Buffer, shard: string): Transform | null {
  if (head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) return zlib.createGunzip();
  if (!head.subarray(0, ZSTD_MAGIC.length).equals(ZSTD_MAGIC)) return null;
  // Node has zstd from 22.15 on.
  const { createZstdDecompress } = zlib as { createZstdDecompress?: () => Transform };
  if (createZstdDecompress !== undefined) return createZstdDecompress();
  const message = `${shard} is compressed with zstd, which needs Node 22.15 for a stream: give the file instead, or decompress it in a pipe ("zstd -dc FILE | shardtool convert - OUTPUT").`;
  throw new UnsupportedShardError({ shard }, message);
}

async function* withHead(head: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head;
  yield* rest;
}
