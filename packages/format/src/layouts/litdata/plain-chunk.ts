/** Newer kinds of chunks, written again as plain chunks: their samples are compressed, or are rows of an Arrow table. */
import { DamagedShardError } from '@shardtool/base';
import type { Source } from '../../source.js';
import { becameShorter, FileWindow } from '../bytes/file-window.js';
import { decompressZstd, loadZstd } from '../bytes/zstd.js';
import { damaged } from '../columns/value-columns.js';
import { readPlaces } from '../place-list.js';

const WORD = 4;
/** First bytes of a zstd frame. */
export const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
/** First bytes of a chunk with groups of compressed samples. */
export const FRAMED = Buffer.from('LDFZ01\0\0', 'latin1');
/** Layout of the beginning of such a chunk: its magic, version, flags, number of samples, rows per group, groups. */
const PREFIX_BYTES = 24;
const GROUP_BYTES = 24;
/** Largest group or sample that is decompressed. */
const MOST_BYTES = 1 << 30;

/** The beginning of a plain chunk: the number of samples, and the offset of each and of the end. */
export function plainHead(sizes: ArrayLike<number>, shard: string): Buffer {
  const head = Buffer.alloc((sizes.length + 2) * WORD);
  head.writeUInt32LE(sizes.length, 0);
  let at = head.length;
  for (let i = 0; i <= sizes.length; i++) {
    if (at > 0xffffffff) throw damaged(shard, 0, 'it has more than 4 GiB after decompression');
    head.writeUInt32LE(at, (i + 1) * WORD);
    at += sizes[i] ?? 0;
  }
  return head;
}

/** A chunk with groups of compressed samples, as a plain chunk. Throws {@link DamagedShardError} and zstd's errors. */
export async function* ofGroups(source: Source): AsyncGenerator<Uint8Array> {
  await loadZstd();
  const { location: shard } = source;
  const prefix = await bytesAt(source, 0, PREFIX_BYTES);
  const version = prefix.readUInt16LE(8);
  const samples = prefix.readUInt32LE(12);
  const groups = prefix.readUInt32LE(20);
  if (version !== 1) throw damaged(shard, 8, `its groups of samples have the unknown version ${version}`);
  const offsets = await bytesAt(source, PREFIX_BYTES, (samples + 1) * WORD);
  const sizes = new Float64Array(samples);
  for (let i = 0; i < samples; i++) {
    sizes[i] = offsets.readUInt32LE((i + 1) * WORD) - offsets.readUInt32LE(i * WORD);
    if (sizes[i]! < 0) throw damaged(shard, PREFIX_BYTES + i * WORD, `sample ${i} ends before it begins`);
  }
  const table = await bytesAt(source, PREFIX_BYTES + offsets.length, groups * GROUP_BYTES);
  yield plainHead(sizes, shard);
  let next = 0;
  for (let group = 0; group < groups; group++) {
    const entry = table.subarray(group * GROUP_BYTES);
    const [first, count] = [entry.readUInt32LE(0), entry.readUInt32LE(4)];
    const [offset, stored, length] = [Number(entry.readBigUInt64LE(8)), entry.readUInt32LE(16), entry.readUInt32LE(20)];
    const isNext = first === next && first + count <= samples;
    let bytes = 0;
    for (let i = first; isNext && i < first + count; i++) bytes += sizes[i]!;
    if (!isNext || bytes !== length)
      throw damaged(
        shard,
        PREFIX_BYTES + offsets.length + group * GROUP_BYTES,
        `group ${group} does not have the samples of its table`,
      );
    next += count;
    yield inflate(await bytesAt(source, offset, stored), length, shard, offset);
  }
  if (next !== samples) throw damaged(shard, PREFIX_BYTES, `its groups have ${next} of its ${samples} samples`);
}

/** A chunk whose samples are compressed one by one, as a plain chunk. Throws {@link DamagedShardError}. */
export async function* ofCompressedSamples(source: Source): AsyncGenerator<Uint8Array> {
  await loadZstd();
  const { location: shard } = source;
  const places = await readPlaces(source, new FileWindow(source));
  const sizes = new Float64Array(places.length - 1);
  for (const [i] of sizes.entries()) {
    const [offset, end] = [places[i]!, places[i + 1]!];
    sizes[i] = contentSize(
      await bytesAt(source, offset, Math.min(end - offset, MOST_FRAME_HEADER_BYTES)),
      shard,
      offset,
    );
  }
  yield plainHead(sizes, shard);
  for (const [i, size] of sizes.entries()) {
    const [offset, end] = [places[i]!, places[i + 1]!];
    yield inflate(await bytesAt(source, offset, end - offset), size, shard, offset);
  }
}

const MOST_FRAME_HEADER_BYTES = 18;

/** The size of the content of a zstd frame, which its header has (RFC 8878, 3.1.1.1). */
function contentSize(frame: Buffer, shard: string, offset: number): number {
  const descriptor = frame.subarray(0, 4).equals(ZSTD) ? (frame[4] ?? 0) : null;
  if (descriptor === null) throw damaged(shard, offset, 'a sample is not compressed with zstd');
  const isSingle = (descriptor & 0x20) !== 0;
  const at = 5 + (isSingle ? 0 : 1) + [0, 1, 2, 4][descriptor & 3]!;
  const kind = descriptor >> 6;
  const bytes = kind === 0 ? (isSingle ? 1 : 0) : 2 ** kind;
  if (bytes === 0 || frame.length < at + bytes)
    throw damaged(shard, offset, 'a compressed sample does not have its size');
  if (bytes === 8) return Number(frame.readBigUInt64LE(at));
  return frame.readUIntLE(at, bytes) + (bytes === 2 ? 256 : 0);
}

/** Decompresses to exactly `length` bytes. */
export function inflate(stored: Uint8Array, length: number, shard: string, offset: number): Uint8Array {
  if (length > MOST_BYTES) throw damaged(shard, offset, 'compressed samples have more than 1 GiB');
  let bytes: Uint8Array;
  try {
    bytes = decompressZstd(stored, length);
  } catch (cause) {
    throw new DamagedShardError(
      { shard, offset },
      `${shard}: compressed samples at byte ${offset} cannot be decompressed (${(cause as Error).message}); fetch or write it again.`,
      { cause },
    );
  }
  if (bytes.length !== length)
    throw damaged(shard, offset, `compressed samples have ${bytes.length} bytes instead of ${length}`);
  return bytes;
}

/** Bytes of a chunk. Throws DamagedShardError if they are outside of it, and TruncatedShardError if it became shorter. */
export async function bytesAt(source: Source, offset: number, bytes: number): Promise<Buffer> {
  const { location: shard, size } = source;
  if (!(offset >= 0 && bytes >= 0 && offset + bytes <= size))
    throw damaged(shard, Math.min(size, Math.max(0, offset)), 'it names a position after its end');
  const target = Buffer.allocUnsafe(bytes);
  const read = await source.readAt(offset, target);
  if (read < bytes) throw becameShorter(shard, offset + read);
  return target;
}
