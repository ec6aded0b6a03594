/** Limit of unused memory that is kept for reuse. */
const KEPT_BYTES = 32 << 20;
const LEAST_BYTES = 4096;
/** Number of buffer sizes between two powers of two: at most an eighth of a buffer is unused. */
const STEPS = 8;

/** Reuses memory for files that are read, because new memory for each costs more than reading a cached file. */
export class ReadBuffers {
  /** Free buffers by length. */
  readonly #free = new Map<number, Buffer[]>();
  #freeBytes = 0;

  /** Returns a buffer of at least `bytes` bytes. It is not cleared. */
  take(bytes: number): Buffer {
    const length = roundedUp(bytes);
    const free = this.#free.get(length)?.pop();
    if (free === undefined) return Buffer.allocUnsafeSlow(length);
    this.#freeBytes -= length;
    return free;
  }

  /** Returns a buffer that is no longer used. */
  giveBack(buffer: Buffer): void {
    const { length } = buffer;
    if (this.#freeBytes + length > KEPT_BYTES) return;
    this.#freeBytes += length;
    const free = this.#free.get(length);
    if (free === undefined) this.#free.set(length, [buffer]);
    else free.push(buffer);
  }
}

function roundedUp(bytes: number): number {
  if (bytes <= LEAST_BYTES) return LEAST_BYTES;
  const step = 2 ** Math.floor(Math.log2(bytes)) / STEPS;
  return Math.ceil(bytes / step) * step;
}
