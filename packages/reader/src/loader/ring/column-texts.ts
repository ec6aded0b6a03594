/** Mean number of bytes per row in a full slot. */
const MOST_ROW_BYTES = 256 * 1024;
const LEAST_SLOT_BYTES = 2 ** 24;
const FIRST_BYTES = 2 ** 16;

/** Texts of label columns that workers need, as UTF-8 in shared memory. The texts of a slot follow each other. */
export class ColumnTexts {
  readonly buffers: readonly SharedArrayBuffer[];
  /** Offset of the next text of each slot. Only the main thread writes. */
  readonly #used: number[];

  /** Uses new memory for `slots` slots of `rows` rows, or the memory of another thread. */
  constructor(size: { readonly slots: number; readonly rows: number }, buffers?: readonly SharedArrayBuffer[]) {
    // Address space, which takes no memory until it is written.
    const maxByteLength = Math.max(LEAST_SLOT_BYTES, size.rows * MOST_ROW_BYTES);
    this.buffers =
      buffers ?? Array.from({ length: size.slots }, () => new SharedArrayBuffer(FIRST_BYTES, { maxByteLength }));
    this.#used = this.buffers.map(() => 0);
  }

  /** Forgets the texts of a slot. */
  clear(slot: number): void {
    if (slot < this.#used.length) this.#used[slot] = 0;
  }

  /** Returns the position of the text in its slot, or null if it does not fit. */
  put(slot: number, text: string): { readonly offset: number; readonly bytes: number } | null {
    const buffer = this.buffers[slot]!;
    const encoded = Buffer.from(text);
    const offset = this.#used[slot]!;
    const end = offset + encoded.length;
    if (end > buffer.maxByteLength) return null;
    if (end > buffer.byteLength) buffer.grow(Math.min(buffer.maxByteLength, Math.max(end, 2 * buffer.byteLength)));
    new Uint8Array(buffer, offset, encoded.length).set(encoded);
    this.#used[slot] = end;
    return { offset, bytes: encoded.length };
  }

  /** A copy, because some functions of Node do not accept growable memory. */
  get(slot: number, { offset, bytes }: { readonly offset: number; readonly bytes: number }): Uint8Array {
    return new Uint8Array(this.buffers[slot]!, offset, bytes).slice();
  }
}
