const CHUNK_BYTES = 1 << 20;

/** Values that are too small for pages of their own, kept until the tree is written. Each is shorter than one chunk. */
export class SmallValues {
  readonly #chunks: Buffer[] = [Buffer.allocUnsafeSlow(CHUNK_BYTES)];
  /** How much of the last chunk is taken, never all of it. */
  #used = 0;

  /** Copies a value and returns its place. */
  add(value: Uint8Array): number {
    if (this.#used + value.length >= CHUNK_BYTES) {
      this.#chunks.push(Buffer.allocUnsafeSlow(CHUNK_BYTES));
      this.#used = 0;
    }
    const chunk = this.#chunks.length - 1;
    const at = this.#used;
    this.#chunks[chunk]!.set(value, at);
    this.#used += value.length;
    return chunk * CHUNK_BYTES + at;
  }

  /** Copies the value at `place` to `target`. */
  copy(place: number, bytes: number, target: Buffer, at: number): void {
    const start = place % CHUNK_BYTES;
    this.#chunks[Math.floor(place / CHUNK_BYTES)]!.copy(target, at, start, start + bytes);
  }
}
