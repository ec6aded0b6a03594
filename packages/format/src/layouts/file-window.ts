import { CutShardError } from '../errors.js';
import type { Source } from '../source.js';

/** One large read. Larger ones gain nothing from the page cache, and fall out of the processor's. */
const LARGE_BYTES = 2 << 20;
/** A hop over a payload reads this much: enough for the heads of a sample. */
const HOP_BYTES = 4096;
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
  #slow = false;

  constructor(source: Source) {
    this.#source = source;
    this.#buffer = Buffer.allocUnsafeSlow(Math.min(LARGE_BYTES, source.size));
  }

  /**
   * The bytes of the file from `position` on: at least `needed`, which are few and lie inside the file. Valid until the
   * next call. Throws {@link CutShardError} where the file has become shorter, and {@link FileError}.
   */
  async at(position: number, needed: number): Promise<Buffer> {
    if (position < this.#start || position + needed > this.#end) await this.#read(position, needed);
    return this.#buffer.subarray(position - this.#start, this.#end - this.#start);
  }

  async #read(position: number, needed: number): Promise<void> {
    const { size, location } = this.#source;
    const gap = position - this.#end;
    const isNear = gap >= 0 && gap < (this.#slow ? LARGE_BYTES : HOP_GAP_BYTES);
    const hop = this.#source.readNow !== undefined && !isNear;
    const length = Math.min(Math.max(hop ? HOP_BYTES : LARGE_BYTES, needed), size - position);
    const target = this.#buffer.subarray(0, length);
    this.#start = position;
    this.#end = position;
    const began = performance.now();
    const now = hop && ++this.#hops % HOPS_A_TURN !== 0;
    const read = now ? this.#source.readNow!(position, target) : await this.#source.readAt(position, target);
    this.#slow = hop && performance.now() - began > SLOW_HOP_MS;
    if (read < length) throw becameShorter(location, position + read);
    this.#end = position + length;
  }
}

/** A file was cut while it was open. */
export function becameShorter(shard: string, offset: number): CutShardError {
  const message = `${shard}: it became shorter while it was read, at byte ${offset}; wait until it is written, and try again.`;
  return new CutShardError({ shard, offset }, message);
}
