import { crc32 } from '@shardtool/base';
import type { Source } from '@shardtool/format';

/** One read. */
const READ_BYTES = 4 * 2 ** 20;

/**
 * Reads a file from its beginning to its end, each byte once and in large reads, gives pieces of it on the way, and sums
 * all of it up.
 */
export class FrontToBack {
  readonly #source: Source;
  #buffer = Buffer.allocUnsafe(READ_BYTES);
  /** What the buffer holds: a range of the file. */
  #start = 0;
  #end = 0;
  #crc32 = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  /**
   * The bytes at `offset`, fewer where the file ends. They are valid until the next call. Pieces are asked for in the
   * order of their offsets; one that lies before the last one's beginning is read by itself.
   */
  async piece(offset: number, bytes: number): Promise<Uint8Array> {
    if (offset < this.#start) return this.#apart(offset, bytes);
    while (this.#end < offset + bytes && (await this.#readOn(offset, bytes))) {}
    return this.#buffer.subarray(
      Math.min(offset, this.#end) - this.#start,
      Math.min(offset + bytes, this.#end) - this.#start,
    );
  }

  /** Reads what is left, and gives the crc32 of the whole file. */
  async crc32(): Promise<number> {
    while (await this.#readOn(this.#end, 0)) {}
    return this.#crc32;
  }

  /** Reads the next stretch behind what the buffer holds, of which everything before `needed` may go. False at the end. */
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
