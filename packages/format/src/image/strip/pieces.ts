/** The parts of a file to keep, in order; adjacent parts are merged. */
export class Pieces {
  readonly #file: Uint8Array;
  readonly #pieces: Uint8Array[] = [];
  /** The last part, if it is a range of the file. */
  #from = 0;
  #to = 0;

  constructor(file: Uint8Array) {
    this.#file = file;
  }

  /** Keeps bytes `from` to `to - 1` of the file. */
  keep(from: number, to: number): void {
    if (from !== this.#to) {
      this.#close();
      this.#from = from;
    }
    this.#to = Math.min(to, this.#file.length);
  }

  /** Adds bytes that were not in the file. */
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
