import { crc32, type Source } from '@shardtool/format';

/** Read at once. */
const CHUNK_BYTES = 2 ** 20;

/** crc32 of a whole file. */
export async function fileCrc32(source: Source): Promise<number> {
  const buffer = new Uint8Array(CHUNK_BYTES);
  let sum = 0;
  for (let offset = 0; offset < source.size; offset += CHUNK_BYTES) {
    const bytes = await source.readAt(offset, buffer);
    sum = crc32(buffer.subarray(0, bytes), sum);
  }
  return sum;
}
