import { writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { FileError, ShardtoolError } from './errors.js';

/** Samples are collected here, and go to the file in one write. */
const BUFFER_BYTES = 16 << 20;
/** Above this a system call takes only a part anyway. */
const MAX_WRITE_BYTES = 1 << 30;
/** The checksum follows so far behind, while the bytes are still in the processor's cache. */
const CHECKSUM_BYTES = 256 << 10;

/** The end of a file that is being written front to back. What is laid out in it can still be taken back. */
export class WriteBuffer {
  /** crc32 of everything that has been written. */
  crc32 = 0;
  readonly #fd: number;
  readonly #shard: string;
  #buffer: Buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  /** Where in the file the buffer begins. */
  #start: number;
  #length = 0;
  #summed = 0;

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

  /** Room for `bytes` behind everything that was appended. Nothing of it is kept until {@link append}. */
  room(bytes: number): Buffer {
    if (this.#length + bytes > this.#buffer.length) this.flush();
    if (bytes > this.#buffer.length) this.#buffer = this.#allocate(bytes);
    return this.#buffer.subarray(this.#length, this.#length + bytes);
  }

  /** Keeps the first `bytes` of the room. */
  append(bytes: number): void {
    this.#length += bytes;
    if (this.#length - this.#summed >= CHECKSUM_BYTES) this.#sum();
  }

  /** Writes what was appended. Throws {@link FileError}. */
  flush(): void {
    this.#sum();
    try {
      writeAt(this.#fd, this.#buffer.subarray(0, this.#length), this.#start);
    } catch (cause) {
      throw unwritable(this.#shard, cause);
    }
    this.#start += this.#length;
    this.#length = 0;
    this.#summed = 0;
    if (this.#buffer.length > BUFFER_BYTES) this.#buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  }

  #sum(): void {
    this.crc32 = crc32(this.#buffer.subarray(this.#summed, this.#length), this.crc32);
    this.#summed = this.#length;
  }

  #allocate(bytes: number): Buffer {
    try {
      return Buffer.allocUnsafeSlow(bytes);
    } catch (cause) {
      const message = `${this.#shard}: a sample needs ${bytes} bytes of memory at once, more than there is; leave it out.`;
      throw new ShardtoolError({ shard: this.#shard }, message, { cause });
    }
  }
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
