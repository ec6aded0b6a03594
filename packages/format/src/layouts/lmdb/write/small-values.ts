const CHUNK_BYTES = 1 << 20;
/** Length of the checksum before each value. */
const SUM_BYTES = 4;

/** Values that stay in their leaves, kept until the tree is written. Each is far shorter than one chunk. */
export class SmallValues {
  readonly #chunks: Buffer[] = [Buffer.allocUnsafeSlow(CHUNK_BYTES)];
  /** How much of the last chunk is used; never all of it. */
  #used = 0;

  /** Copies a value, and the checksum that it should have, and returns its place. */
  add(value: Uint8Array, sum: number): number {
    if (this.#used + SUM_BYTES + value.length >= CHUNK_BYTES) {
      this.#chunks.push(Buffer.allocUnsafeSlow(CHUNK_BYTES));
      this.#used = 0;
    }
    const last = this.#chunks.length - 1;
    const at = this.#used;
    this.#chunks[last]!.writeUInt32LE(sum, at);
    this.#chunks[last]!.set(value, at + SUM_BYTES);
    this.#used += SUM_BYTES + value.length;
    return last * CHUNK_BYTES + at;
  }

  /** Copies the value at `place` to `target`, and returns its checksum. */
  copy(place: number, bytes: number, target: Buffer, at: number): number {
    const chunk = this.#chunks[Math.floor(place / CHUNK_BYTES)]!;
    const start = (place % CHUNK_BYTES) + SUM_BYTES;
    chunk.copy(target, at, start, start + bytes);
    return chunk.readUInt32LE(start - SUM_BYTES);
  }
}
