/** The framing of TFRecord: length, its crc32c, data, their crc32c (TensorFlow's record_writer.h). */
import { DamagedShardError, maskedCrc32c, TruncatedShardError, UnsupportedShardError } from '@shardtool/base';
import type { Source } from '../../source.js';
import { compressedWhole, compressionOf } from '../bytes/compressed.js';
import { becameShorter, type FileWindow } from '../bytes/file-window.js';

/** Bytes before and after the data of a record. */
export const HEAD_BYTES = 12;
export const FOOT_BYTES = 4;
/** A record is held in memory while its crc32c is computed. */
const MOST_RECORD_BYTES = 1 << 30;

/** Whether the content is compressed with gzip. A TFRecord never begins with gzip's signature, because its length must match its crc32c. */
export async function isGzip(source: Source): Promise<boolean> {
  const head = Buffer.alloc(HEAD_BYTES);
  const read = await source.readAt(0, head);
  const isRecord = read === HEAD_BYTES && maskedCrc32c(head.subarray(0, 8)) === head.readUInt32LE(8);
  return head[0] === 0x1f && head[1] === 0x8b && !isRecord;
}

/** The length of the record at `offset`. */
export async function recordBytes(window: FileWindow, shard: string, offset: number, size: number): Promise<number> {
  if (size - offset < HEAD_BYTES + FOOT_BYTES) throw cut(shard, offset);
  const head = await window.at(offset, HEAD_BYTES);
  if (maskedCrc32c(head.subarray(0, 8)) !== head.readUInt32LE(8)) {
    const compression = offset === 0 ? compressionOf(head) : null;
    if (compression !== null) throw compressedWhole(shard, compression);
    throw damaged(
      shard,
      offset,
      `at byte ${offset} there is no TFRecord record, or its length has changed, so the records after it cannot be found`,
    );
  }
  const bytes = Number(head.readBigUInt64LE(0));
  if (bytes > size - offset - HEAD_BYTES - FOOT_BYTES) throw cut(shard, offset);
  return bytes;
}

/** Checks a record against its crc32c. Returns the memory that it was read into, for reuse. */
export async function checkRecord(source: Source, start: number, bytes: number, memory: Buffer): Promise<Buffer> {
  const { location: shard } = source;
  if (bytes > MOST_RECORD_BYTES) {
    throw new UnsupportedShardError(
      { shard, offset: start },
      `${shard}: the record at byte ${start - HEAD_BYTES} has ${bytes} bytes, more than 1 GiB; split it.`,
    );
  }
  const room = memory.length < bytes + FOOT_BYTES ? Buffer.allocUnsafeSlow(bytes + FOOT_BYTES) : memory;
  const record = room.subarray(0, bytes + FOOT_BYTES);
  const read = await source.readAt(start, record);
  if (read < record.length) throw becameShorter(shard, start + read);
  if (maskedCrc32c(record.subarray(0, bytes)) !== record.readUInt32LE(bytes)) {
    throw damaged(
      shard,
      start - HEAD_BYTES,
      `the record at byte ${start - HEAD_BYTES} has changed since it was written (its crc32c does not match)`,
    );
  }
  return room;
}

function cut(shard: string, offset: number): TruncatedShardError {
  const message = `${shard}: its last record, at byte ${offset}, is truncated; fetch or write the file again.`;
  return new TruncatedShardError({ shard, offset }, message);
}

export function damaged(shard: string, offset: number, what: string): DamagedShardError {
  return new DamagedShardError({ shard, offset }, `${shard}: ${what}; fetch or write the file again.`);
}
