import { open } from 'node:fs/promises';
import { crc32, readFully } from '@shardtool/base';

/** Length of a block. A piece has a crc32 for each block, so a part of it can be checked without reading all of it. */
const BLOCK_BYTES = 64 << 10;
const SUM_BYTES = 4;

/** Length of the file of a piece: its content, then the crc32 of each block (uint32, little-endian). */
export function fileBytes(bytes: number): number {
  return bytes + SUM_BYTES * Math.ceil(bytes / BLOCK_BYTES);
}

/** The checksums that follow the content in the file of a piece. */
export function sumsOf(content: Uint8Array): Uint8Array {
  const sums = Buffer.alloc(fileBytes(content.length) - content.length);
  for (let at = 0, block = 0; at < content.length; at += BLOCK_BYTES, block++) {
    sums.writeUInt32LE(crc32(content.subarray(at, at + BLOCK_BYTES)), block * SUM_BYTES);
  }
  return sums;
}

/** Result of reading a piece. */
export type PieceRead = 'read' | 'missing' | 'damaged';

/**
 * Fills `target` with the bytes from `offset` of a piece whose content has `bytes` bytes, and checks every block that it reads from.
 * `target` is valid only if the result is `read`.
 */
export async function readPiece(path: string, bytes: number, offset: number, target: Uint8Array): Promise<PieceRead> {
  const handle = await open(path, 'r').catch(() => null);
  if (handle === null) return 'missing';
  const fill = async (bytesOf: Uint8Array, from: number): Promise<boolean> =>
    (await readFully(handle, bytesOf, from)) === bytesOf.length;
  try {
    const first = Math.floor(offset / BLOCK_BYTES);
    const last = Math.ceil((offset + target.length) / BLOCK_BYTES);
    const sums = Buffer.alloc((last - first) * SUM_BYTES);
    if (!(await fill(sums, bytes + first * SUM_BYTES))) return 'damaged';
    for (const { from, to } of rangesOf(bytes, offset, target.length)) {
      const isWhole = from >= offset && to <= offset + target.length;
      const read = isWhole ? target.subarray(from - offset, to - offset) : new Uint8Array(to - from);
      if (!(await fill(read, from))) return 'damaged';
      for (let at = 0; at < read.length; at += BLOCK_BYTES) {
        const sum = sums.readUInt32LE(((from + at) / BLOCK_BYTES - first) * SUM_BYTES);
        if (crc32(read.subarray(at, at + BLOCK_BYTES)) !== sum) return 'damaged';
      }
      if (isWhole) continue;
      const [begin, end] = [Math.max(from, offset), Math.min(to, offset + target.length)];
      target.set(read.subarray(begin - from, end - from), begin - offset);
    }
    return 'read';
  } catch {
    return 'damaged';
  } finally {
    await handle.close();
  }
}

/** Yields runs of whole blocks, each for one read. The blocks in which the target begins and ends are separate if it covers a part of them. */
function* rangesOf(bytes: number, offset: number, length: number): Generator<{ from: number; to: number }> {
  const end = offset + length;
  const down = (at: number) => Math.floor(at / BLOCK_BYTES) * BLOCK_BYTES;
  const blockEnd = (at: number) => Math.min(bytes, down(at) + BLOCK_BYTES);
  let at = down(offset);
  if (at < offset && at < end) {
    yield { from: at, to: blockEnd(at) };
    at = blockEnd(at);
  }
  const whole = end === bytes ? end : down(end);
  if (at < whole) yield { from: at, to: whole };
  if (Math.max(at, whole) < end) yield { from: Math.max(at, whole), to: blockEnd(Math.max(at, whole)) };
}
