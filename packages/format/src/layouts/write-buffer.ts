import { ftruncateSync, writeSync } from 'node:fs';
import { crc32, crc32Combine, FileError, ShardtoolError } from '@shardtool/base';

/**
 * Samples are collected here, and go to the file in one write. What was read into it is still in the processor's cache
 * when it is summed up and written.
 */
const BUFFER_BYTES = 1 << 20;
/** One larger sample is often not the last: the buffer then doubles, and keeps up to so much. */
const DOUBLED_BYTES = 64 << 20;
/** Above this a system call takes only a part anyway. */
const MAX_WRITE_BYTES = 1 << 30;

/** Payloads in the room, with the checksum that they had where they came from. */
export interface SummedBytes {
  /** From the start of the room. */
  readonly offset: number;
  readonly bytes: number;
  readonly crc32: number;
}

const NONE: readonly SummedBytes[] = [];

/** A place in the file, and the checksum of what stands before it. */
interface Mark {
  readonly position: number;
  readonly crc32: number;
}

/**
 * The end of a file that is being written front to back. What is laid out in it can still be taken back. Its checksum is put
 * together from those of the payloads where they came from, and of all bytes around them as they are in the buffer. So it is
 * the checksum of the file only if every payload reached the file as it was read.
 */
export class WriteBuffer {
  readonly #fd: number;
  readonly #shard: string;
  #buffer: Buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  /** Where in the file the buffer begins. */
  #start: number;
  #length = 0;
  /** How far in the buffer the checksum has come. */
  #summed = 0;
  #crc32 = 0;

  /** `start` is where in the file the first byte goes; `shard` is for messages. */
  constructor(fd: number, shard: string, start = 0) {
    this.#fd = fd;
    this.#shard = shard;
    this.#start = start;
  }

  /** Where in the file the next byte goes. */
  get position(): number {
    return this.#start + this.#length;
  }

  /** crc32 that everything that has been flushed should have. */
  get crc32(): number {
    return this.#crc32;
  }

  /**
   * Room for `bytes` behind everything that was appended. Nothing of it is kept until {@link append}. `key` is that of
   * the sample which needs it, for messages.
   */
  room(bytes: number, key?: string): Buffer {
    if (this.#length + bytes > this.#buffer.length) this.flush();
    if (bytes > this.#buffer.length) this.#grow(bytes, key);
    return this.#buffer.subarray(this.#length, this.#length + bytes);
  }

  /** Keeps the first `bytes` of the room, with the checksums of the payloads in it (rising). */
  append(bytes: number, summed: readonly SummedBytes[] = NONE): void {
    for (let i = 0; i < summed.length; i++) this.take(summed[i]!.offset, summed[i]!.bytes, summed[i]!.crc32);
    this.#length += bytes;
  }

  /** One of the `summed` of the {@link append} that comes next. */
  take(offset: number, bytes: number, sum: number): void {
    this.#sumTo(this.#length + offset);
    this.#crc32 = crc32Combine(this.#crc32, sum, bytes);
    this.#summed += bytes;
  }

  /** Writes what was appended. Throws {@link FileError}. */
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

  /** Writes bytes that lie elsewhere, and should have the checksum `sum`, behind what was appended. Throws {@link FileError}. */
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

  /** Writes what was appended, and says where {@link back} can return to. */
  mark(): Mark {
    this.flush();
    return { position: this.#start, crc32: this.#crc32 };
  }

  /** Takes everything back that came after {@link mark}. Throws {@link FileError}. */
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

  /** Writes pieces as they come, `bytes` all together, and returns their crc32. Throws {@link FileError}, and the error of a piece as it is. */
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
    if (done !== bytes) throw new Error(`A payload of ${bytes} bytes came in pieces of other sizes.`);
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
      const message = `${shard}: sample "${key ?? ''}" needs ${bytes} bytes of memory at once, more than there is; leave it out, or pack to tar.`;
      throw new ShardtoolError({ shard, key }, message, { cause });
    }
  }
}

/** The checksum that bytes should have, given the payloads in them (rising). */
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

/** The system could not write a shard. `cause` is its own error. */
export function unwritable(shard: string, cause: unknown): FileError {
  const remedy =
    (cause as NodeJS.ErrnoException).code === 'ENOSPC' ? 'free some space on its disk' : 'check its folder';
  const message = `${shard} cannot be written (${(cause as Error).message}); ${remedy}, then pack again.`;
  return new FileError({ shard, path: shard }, message, { cause });
}
