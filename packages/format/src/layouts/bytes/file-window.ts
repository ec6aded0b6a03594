import { TruncatedShardError } from '@shardtool/base';
import type { Source } from '../../source.js';

/** Size of one large read. Larger ones gain nothing from the page cache, and exceed the processor's cache. */
const LARGE_BYTES = 2 << 20;
/** Size of a short read that jumps over a payload: enough for the headers of a sample. */
const HOP_BYTES = 2048;
/** If the next needed bytes are further away than this, a jump is cheaper than reading everything in between. */
const HOP_GAP_BYTES = 12 << 10;
/** A short read that takes longer did not come from the page cache. A large read then makes the disk read ahead. */
const SLOW_HOP_MS = 0.1;
/** After this many short reads, the walk yields to the event loop; that is every few milliseconds. */
const HOPS_A_TURN = 1024;

/**
 * Shows a file window by window to a walk that reads a few bytes here and there, mostly forward. It uses large reads if
 * these bytes are close together or the file is not cached, otherwise short synchronous reads.
 */
export class FileWindow {
  readonly #source: Source;
  readonly #buffer: Buffer;
  /** The range of the file that the buffer holds. */
  #start = 0;
  #end = 0;
  #hops = 0;
  #target: Buffer = Buffer.alloc(0);
  #slow = false;

  constructor(source: Source) {
    this.#source = source;
    this.#buffer = Buffer.allocUnsafeSlow(Math.min(LARGE_BYTES, source.size));
  }

  /**
   * The bytes of the file from `position` on: at least `needed`, which is small and inside the file. Valid until the
   * next call. The result is synchronous if possible, because a walk makes a hundred thousand short reads per second.
   * Throws {@link TruncatedShardError} if the file has become shorter, and {@link FileError}.
   */
  at(position: number, needed: number): Buffer | Promise<Buffer> {
    if (position >= this.#start && position + needed <= this.#end) {
      return this.#buffer.subarray(position - this.#start, this.#end - this.#start);
    }
    const gap = position - this.#end;
    const isNear = gap >= 0 && gap < (this.#slow ? LARGE_BYTES : HOP_GAP_BYTES);
    const isHop = this.#source.readNow !== undefined && !isNear;
    const length = Math.min(Math.max(isHop ? HOP_BYTES : LARGE_BYTES, needed), this.#source.size - position);
    // All short reads have the same length, and creating a view takes longer than reading so few bytes.
    if (this.#target.length !== length) this.#target = this.#buffer.subarray(0, length);
    const target = this.#target;
    // Until the bytes arrive, the buffer has no valid bytes.
    this.#start = position;
    this.#end = position;
    if (!isHop || ++this.#hops % HOPS_A_TURN === 0) return this.#readLater(position, target);
    const began = performance.now();
    const read = this.#source.readNow!(position, target);
    this.#slow = performance.now() - began > SLOW_HOP_MS;
    return this.#filled(position, target, read);
  }

  async #readLater(position: number, target: Buffer): Promise<Buffer> {
    this.#slow = false;
    return this.#filled(position, target, await this.#source.readAt(position, target));
  }

  #filled(position: number, target: Buffer, read: number): Buffer {
    if (read < target.length) throw becameShorter(this.#source.location, position + read);
    this.#end = position + target.length;
    return target;
  }
}

/** The error for a file that was truncated while it was open. */
export function becameShorter(shard: string, offset: number): TruncatedShardError {
  const message = `${shard}: it became shorter while it was read, at byte ${offset}; wait until it is written, and try again.`;
  return new TruncatedShardError({ shard, offset }, message);
}
