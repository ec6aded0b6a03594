import { ftruncateSync, writeSync } from 'node:fs';
import { crc32, crc32Combine, FileError, reasonOf, ShardtoolError, systemCodeOf } from '@shardtool/base';
import type { SummedBytes } from '../../sample/sample-codec.js';

/**
 * Samples are collected here and written to the file in one call. When the buffer is checksummed and written, its
 * content is still in the processor's cache.
 */
const BUFFER_BYTES = 1 << 20;
/** A larger sample is often followed by others: the buffer then doubles, and keeps at most this size. */
const DOUBLED_BYTES = 64 << 20;
/** A system call accepts no more than this at once. */
const MAX_WRITE_BYTES = 1 << 30;

const NONE: readonly SummedBytes[] = [];

/** An offset in the file, and the checksum of everything before it. */
interface Mark {
  readonly position: number;
  readonly crc32: number;
}

/**
 * The end of a file that is written front to back. Content that was appended can still be undone. Its checksum is
 * combined from the checksums of the payloads at their source and from all bytes around them in the buffer. So it
 * matches the file only if every payload reached the file unchanged.
 */
export class WriteBuffer {
  readonly #fd: number;
  readonly #shard: string;
  #buffer: Buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  /** Offset of the buffer in the file. */
  #start: number;
  #length = 0;
  /** Number of bytes at the start of the buffer that have been checksummed. */
  #summed = 0;
  #crc32 = 0;

  /** `start` is the file offset of the first byte; `shard` is for messages. */
  constructor(fd: number, shard: string, start = 0) {
    this.#fd = fd;
    this.#shard = shard;
    this.#start = start;
  }

  /** The file offset of the next byte. */
  get position(): number {
    return this.#start + this.#length;
  }

  /** The crc32 that everything flushed so far should have. */
  get crc32(): number {
    return this.#crc32;
  }

  /**
   * Room for `bytes` after everything that was appended. Its content is dropped unless {@link append} is called. `key`
   * is that of the sample that needs it, for messages.
   */
  room(bytes: number, key?: string): Buffer {
    if (this.#length + bytes > this.#buffer.length) this.flush();
    if (bytes > this.#buffer.length) this.#grow(bytes, key);
    return this.#buffer.subarray(this.#length, this.#length + bytes);
  }

  /** Keeps the first `bytes` of the room, with the checksums of the payloads in it (ascending). */
  append(bytes: number, summed: readonly SummedBytes[] = NONE): void {
    for (let i = 0; i < summed.length; i++) this.take(summed[i]!.offset, summed[i]!.bytes, summed[i]!.crc32);
    this.#length += bytes;
  }

  /** Records one of the `summed` of the next {@link append}. */
  take(offset: number, bytes: number, sum: number): void {
    this.#sumTo(this.#length + offset);
    this.#crc32 = crc32Combine(this.#crc32, sum, bytes);
    this.#summed += bytes;
  }

  /** Writes the appended content. Throws {@link FileError}. */
  flush(): void {
    this.#sumTo(this.#length);
    try {
      writeAt(this.#fd, this.#buffer.subarray(0, this.#length), this.#start);
    } catch (cause) {
      throw unwritable(this.#shard, cause);
    }
    this.#start += this.#length;
    this.#length = 0;
    this.#summed = 0;
    if (this.#buffer.length > DOUBLED_BYTES) this.#buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  }

  /**
   * Writes bytes from outside the buffer, which should have the checksum `sum`, after the appended content. Throws
   * {@link FileError}.
   */
  write(bytes: Uint8Array, sum: number): void {
    this.flush();
    this.#crc32 = crc32Combine(this.#crc32, sum, bytes.length);
    try {
      writeAt(this.#fd, bytes, this.#start);
    } catch (cause) {
      throw unwritable(this.#shard, cause);
    }
    this.#start += bytes.length;
  }

  /** Writes the appended content, and returns a mark for {@link back}. */
  mark(): Mark {
    this.flush();
    return { position: this.#start, crc32: this.#crc32 };
  }

  /** Undoes everything after {@link mark}. Throws {@link FileError}. */
  back({ position, crc32: sum }: Mark): void {
    try {
      ftruncateSync(this.#fd, position);
    } catch (cause) {
      throw unwritable(this.#shard, cause);
    }
    this.#start = position;
    this.#crc32 = sum;
    this.#length = 0;
    this.#summed = 0;
  }

  /** Writes pieces as they arrive, `bytes` in total, and returns their crc32. Throws {@link FileError}, and the errors of the pieces. */
  async pass(pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>, bytes: number): Promise<number> {
    this.flush();
    let sum = 0;
    let done = 0;
    for await (const piece of pieces) {
      if (done + piece.length > bytes) break;
      try {
        writeAt(this.#fd, piece, this.#start + done);
      } catch (cause) {
        throw unwritable(this.#shard, cause);
      }
      sum = crc32(piece, sum);
      done += piece.length;
    }
    if (done !== bytes) throw new Error(`The pieces of a payload do not add up to its ${bytes} bytes.`);
    this.#start += bytes;
    this.#crc32 = crc32Combine(this.#crc32, sum, bytes);
    return sum;
  }

  #sumTo(end: number): void {
    if (end === this.#summed) return;
    this.#crc32 = crc32(this.#buffer.subarray(this.#summed, end), this.#crc32);
    this.#summed = end;
  }

  #grow(bytes: number, key: string | undefined): void {
    try {
      this.#buffer = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(2 * this.#buffer.length, DOUBLED_BYTES)));
    } catch (cause) {
      const shard = this.#shard;
      const message = `${shard}: sample "${key ?? ''}" needs ${bytes} bytes of memory at once, more than is available; omit it, or pack to tar.`;
      throw new ShardtoolError({ shard, key }, message, { cause });
    }
  }
}

/** The checksum that bytes should have, given the payloads in them (ascending). */
export function crc32Around(bytes: Uint8Array, summed: readonly SummedBytes[]): number {
  let sum = 0;
  let end = 0;
  for (const payload of summed) {
    sum = crc32(bytes.subarray(end, payload.offset), sum);
    sum = crc32Combine(sum, payload.crc32, payload.bytes);
    end = payload.offset + payload.bytes;
  }
  return crc32(bytes.subarray(end), sum);
}

/** Writes all of `bytes` at `position`. */
export function writeAt(fd: number, bytes: Uint8Array, position: number): void {
  for (let at = 0; at < bytes.length; ) {
    at += writeSync(fd, bytes, at, Math.min(bytes.length - at, MAX_WRITE_BYTES), position + at);
  }
}

/** The error for a failed write of a shard. `cause` is the system's error. */
export function unwritable(shard: string, cause: unknown): FileError {
  const isFull = ['ENOSPC', 'EDQUOT'].includes(systemCodeOf(cause) ?? '');
  const remedy = isFull ? 'free some space on its disk' : 'check its folder';
  const message = `${shard} cannot be written: ${reasonOf(cause)}; ${remedy}, then pack again.`;
  return new FileError({ shard, path: shard }, message, { cause });
}
