import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** RFC 1952, section 2.3.1: ID1 and ID2. */
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/** Yields the bytes of a stream, decompressed if they start with the gzip signature. */
export async function* plainBytes(input: Readable): AsyncGenerator<Buffer> {
  const chunks: AsyncIterator<Buffer> = input[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    head = Buffer.concat([head, next.value]);
    if (head.length >= GZIP_MAGIC.length) break;
  }
  const bytes = withHead(head, { [Symbol.asyncIterator]: () => chunks });
  if (!head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) yield* bytes;
  // An error is reported by the consumer of the output.
  else yield* pipeline(Readable.from(bytes), createGunzip(), () => undefined);
}

async function* withHead(head: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head;
  yield* rest;
}
