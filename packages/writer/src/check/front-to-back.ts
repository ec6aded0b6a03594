import { crc32 } from '@shardtool/base';
import type { Source } from '@shardtool/format';

/** Size of one read, in bytes. */
const READ_BYTES = 4 * 2 ** 20;

/**
 * Reads a file once from beginning to end, in large reads. It returns pieces on the way and computes the checksum of
 * the whole file.
 */
export class FrontToBack {
  readonly #source: Source;
  #buffer = Buffer.allocUnsafe(READ_BYTES);
  /** Offset in the file of the buffered range. */
  #start = 0;
  #end = 0;
  #crc32 = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  /**
   * Returns the bytes at `offset`, fewer at the end of the file. They are valid until the next call. Pieces should be
   * requested in the order of their offsets; a piece that starts before the last one is read separately.
   */
  async piece(offset: number, bytes: number): Promise<Uint8Array> {
    if (offset < this.#start) return this.#apart(offset, bytes);
    while (this.#end < offset + bytes && (await this.#readOn(offset, bytes))) {}
    return this.#buffer.subarray(
      Math.min(offset, this.#end) - this.#start,
      Math.min(offset + bytes, this.#end) - this.#start,
    );
  }

  /** Reads the rest, and returns the crc32 of the whole file. */
  async crc32(): Promise<number> {
    while (await this.#readOn(this.#end, 0)) {}
    return this.#crc32;
  }

  /** Reads the next range after the buffer. Bytes before `needed` may be dropped. Returns false at the end. */
  async #readOn(needed: number, bytes: number): Promise<boolean> {
    const keptFrom = Math.min(needed, this.#end);
    const kept = this.#buffer.subarray(keptFrom - this.#start, this.#end - this.#start);
    const room = Math.max(READ_BYTES, bytes, 2 * kept.length);
    const target = this.#buffer.length < room ? Buffer.allocUnsafe(room) : this.#buffer;
    target.set(kept);
    this.#buffer = target;
    this.#start = keptFrom;
    const read = await this.#source.readAt(this.#end, target.subarray(kept.length));
    this.#crc32 = crc32(target.subarray(kept.length, kept.length + read), this.#crc32);
    this.#end += read;
    return read > 0;
  }

  async #apart(offset: number, bytes: number): Promise<Uint8Array> {
    const target = Buffer.allocUnsafe(bytes);
    return target.subarray(0, await this.#source.readAt(offset, target));
  }
}
