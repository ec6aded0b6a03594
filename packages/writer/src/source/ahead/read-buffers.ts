/** Of memory that waits to be used again. */
const KEPT_BYTES = 32 << 20;
const LEAST_BYTES = 4096;
/** Sizes between a power of two and the next: at most an eighth is left over. */
const STEPS = 8;

/** Memory for files that are read, used again and again: new memory for each costs more than reading a file that is cached. */
export class ReadBuffers {
  /** By their length. */
  readonly #free = new Map<number, Buffer[]>();
  #freeBytes = 0;

  /** At least `bytes` long. Whatever was in it is still there. */
  take(bytes: number): Buffer {
    const length = roundedUp(bytes);
    const free = this.#free.get(length)?.pop();
    if (free === undefined) return Buffer.allocUnsafeSlow(length);
    this.#freeBytes -= length;
    return free;
  }

  /** Nobody uses it any more. */
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
