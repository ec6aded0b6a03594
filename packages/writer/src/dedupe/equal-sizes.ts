import { lowerBound } from '@shardtool/base';

/** Finds files that share their length with another file or image: only these can have the same bytes. */
export class EqualSizes {
  readonly #files: Uint32Array;
  readonly #bytes: Float64Array;
  readonly #sorted: Float64Array;
  /** 1 for lengths of other images, at the first position of that length among the sorted sizes. */
  readonly #others: Uint8Array;

  /** `bytes` has the length of each file by its number. */
  constructor(files: Uint32Array, bytes: Float64Array) {
    this.#files = files;
    this.#bytes = bytes;
    this.#sorted = Float64Array.from(files, (file) => bytes[file]!).sort();
    this.#others = new Uint8Array(files.length);
  }

  /** True if a file has this length. */
  has(size: number): boolean {
    return this.#sorted[this.#placeOf(size)] === size;
  }

  /** Adds the length of an image that is not one of the files. */
  note(size: number): void {
    const place = this.#placeOf(size);
    if (this.#sorted[place] === size) this.#others[place] = 1;
  }

  /** Files that share their length with another file or image. */
  candidates(): Uint32Array {
    // Empty files and files that could not be measured are bad; packing reports why.
    return this.#files.filter((file) => this.#bytes[file]! > 0 && this.#isShared(this.#bytes[file]!));
  }

  #isShared(size: number): boolean {
    const place = this.#placeOf(size);
    return this.#sorted[place + 1] === size || this.#others[place] === 1;
  }

  /** First position whose length is not smaller. */
  #placeOf(size: number): number {
    return lowerBound(this.#sorted, size);
  }
}
