import { FileError } from '@shardtool/base';

/**
 * Watches that a list comes to its end: a store that does not understand where to go on gives the same page again and again,
 * and one that does not say where keeps the rest for itself.
 */
export class ListPages {
  readonly #location: string;
  readonly #asked = new Set<string>();
  #first: string | undefined;

  constructor(location: string) {
    this.#location = location;
  }

  /**
   * Checks a page by its first name and where it says that the next one begins (null: it is the last). Throws {@link FileError}
   * if the list does not advance.
   */
  take(first: string | undefined, next: string | null): void {
    const isRepeated = first !== undefined && first === this.#first;
    if (isRepeated || (next !== null && this.#asked.has(next))) {
      throw this.#broken('the server gives the same part of the list again and again');
    }
    this.#first = first;
    if (next !== null) this.#asked.add(next);
  }

  /** The error for a page that is not the last and does not say where the next one begins. */
  withoutNext(): FileError {
    return this.#broken('the server cuts the list short and does not say where it goes on');
  }

  #broken(why: string): FileError {
    const path = this.#location;
    return new FileError({ path }, `${path} cannot be listed: ${why}. Name the files or shards themselves instead.`);
  }
}
