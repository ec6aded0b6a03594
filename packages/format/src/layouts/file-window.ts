import { TruncatedShardError } from '@shardtool/base';
import type { Source } from '../source.js';

/** One large read. Larger ones gain nothing from the page cache, and fall out of the processor's. */
const LARGE_BYTES = 2 << 20;
/** A hop over a payload reads this much: enough for the heads of a sample. */
const HOP_BYTES = 2048;
/** What is needed next lies further on than this: then a hop is cheaper than reading everything in between. */
const HOP_GAP_BYTES = 12 << 10;
/** A hop that takes longer did not come from the page cache: then a large read gets the disk to read ahead. */
const SLOW_HOP_MS = 0.1;
/** After so many hops there is a turn of the event loop, some milliseconds later. */
const HOPS_A_TURN = 1024;

/**
 * Shows a file a window at a time to a walk that looks at a few bytes here and there, mostly further on: by large reads
 * where these bytes lie close together or the file is not cached, otherwise by short ones without a turn of the event loop.
 */
export class FileWindow {
  readonly #source: Source;
  readonly #buffer: Buffer;
  /** What the buffer holds: a range of the file. */
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
   * The bytes of the file from `position` on: at least `needed`, which are few and lie inside the file. Valid until the
   * next call. They come at once where that needs no turn of the event loop, since a walk makes a hundred thousand hops a
   * second. Throws {@link TruncatedShardError} where the file has become shorter, and {@link FileError}.
   */
  at(position: number, needed: number): Buffer | Promise<Buffer> {
    if (position >= this.#start && position + needed <= this.#end) {
      return this.#buffer.subarray(position - this.#start, this.#end - this.#start);
    }
    const gap = position - this.#end;
    const isNear = gap >= 0 && gap < (this.#slow ? LARGE_BYTES : HOP_GAP_BYTES);
    const isHop = this.#source.readNow !== undefined && !isNear;
    const length = Math.min(Math.max(isHop ? HOP_BYTES : LARGE_BYTES, needed), this.#source.size - position);
    // Hops are of one length, and making a view of it takes longer than reading so little.
    if (this.#target.length !== length) this.#target = this.#buffer.subarray(0, length);
    const target = this.#target;
    // Until the bytes are there, the buffer holds nothing.
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

/** A file was cut while it was open. */
export function becameShorter(shard: string, offset: number): TruncatedShardError {
  const message = `${shard}: it became shorter while it was read, at byte ${offset}; wait until it is written, and try again.`;
  return new TruncatedShardError({ shard, offset }, message);
}
