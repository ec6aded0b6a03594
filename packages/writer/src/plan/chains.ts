import type { Grouping } from './grouping.js';

/** File number that means "no file". */
export const NONE = -1;

/** The files of each sample as a linked list that starts with its image: four bytes per file. */
export class Chains {
  readonly #next: Int32Array;
  readonly #isImage: Uint8Array;
  #samples = 0;
  #files = 0;

  constructor(files: number) {
    this.#next = new Int32Array(files).fill(NONE);
    this.#isImage = new Uint8Array(files);
  }

  add(image: number, members: readonly number[]): void {
    let last = image;
    for (const file of members) {
      if (file === image) continue;
      this.#next[last] = file;
      last = file;
    }
    this.#isImage[image] = 1;
    this.#samples++;
    this.#files += members.length;
  }

  isImage(file: number): boolean {
    return this.#isImage[file] === 1;
  }

  /** Returns the files of a sample, its image first. */
  of(image: number): number[] {
    const files: number[] = [];
    for (let file = image; file !== NONE; file = this.#next[file]!) files.push(file);
    return files;
  }

  append(image: number, file: number): void {
    this.#next[this.of(image).at(-1)!] = file;
    this.#files++;
  }

  inOrder(): Grouping {
    const fileStart = new Uint32Array(this.#samples + 1);
    const files = new Uint32Array(this.#files);
    let sample = 0;
    let used = 0;
    for (let image = this.#isImage.indexOf(1); image !== -1; image = this.#isImage.indexOf(1, image + 1)) {
      for (let file = image; file !== NONE; file = this.#next[file]!) files[used++] = file;
      fileStart[++sample] = used;
    }
    return { samples: this.#samples, fileStart, files };
  }
}
