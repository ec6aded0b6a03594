/** Parts of a file that stay, one behind the other; neighbours become one. */
export class Pieces {
  readonly #file: Uint8Array;
  readonly #pieces: Uint8Array[] = [];
  /** The last piece, as far as it is a part of the file. */
  #from = 0;
  #to = 0;

  constructor(file: Uint8Array) {
    this.#file = file;
  }

  /** Bytes `from` to `to - 1` of the file stay. */
  keep(from: number, to: number): void {
    if (from !== this.#to) {
      this.#close();
      this.#from = from;
    }
    this.#to = Math.min(to, this.#file.length);
  }

  /** Bytes that were not in the file. */
  add(bytes: Uint8Array): void {
    this.#close();
    this.#pieces.push(bytes);
    this.#from = this.#to;
  }

  joined(): Uint8Array {
    this.#close();
    return Buffer.concat(this.#pieces);
  }

  #close(): void {
    if (this.#to > this.#from) this.#pieces.push(this.#file.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}
