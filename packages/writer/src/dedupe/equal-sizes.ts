import { lowerBound } from '@shardtool/base';

/** The lengths of files, and which of them something else has, too: only what is equally long can have the same bytes. */
export class EqualSizes {
  readonly #files: Uint32Array;
  readonly #bytes: Float64Array;
  readonly #sorted: Float64Array;
  /** 1 for lengths of things that are none of the files, at their first place among the sorted ones. */
  readonly #others: Uint8Array;

  /** `bytes` has the length of each file by its number. */
  constructor(files: Uint32Array, bytes: Float64Array) {
    this.#files = files;
    this.#bytes = bytes;
    this.#sorted = Float64Array.from(files, (file) => bytes[file]!).sort();
    this.#others = new Uint8Array(files.length);
  }

  /** Whether a file has this length. */
  has(size: number): boolean {
    return this.#sorted[this.#placeOf(size)] === size;
  }

  /** Something that is none of the files has this length. */
  note(size: number): void {
    const place = this.#placeOf(size);
    if (this.#sorted[place] === size) this.#others[place] = 1;
  }

  /** The files that have the length of another one, or of something else. */
  candidates(): Uint32Array {
    // Empty files are bad, and so are those that could not be measured: packing says why.
    return this.#files.filter((file) => this.#bytes[file]! > 0 && this.#isShared(this.#bytes[file]!));
  }

  #isShared(size: number): boolean {
    const place = this.#placeOf(size);
    return this.#sorted[place + 1] === size || this.#others[place] === 1;
  }

  /** The first place at which nothing shorter stands. */
  #placeOf(size: number): number {
    return lowerBound(this.#sorted, size);
  }
}
