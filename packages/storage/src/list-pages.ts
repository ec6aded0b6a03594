import { FileError } from '@shardtool/base';

/**
 * Checks that a list advances. A store that ignores the continuation token returns the same page again and again, and a store that
 * sends no token omits the rest of the list.
 */
export class ListPages {
  readonly #location: string;
  readonly #asked = new Set<string>();
  #first: string | undefined;

  constructor(location: string) {
    this.#location = location;
  }

  /**
   * Checks a page by its first name and its continuation token (null: it is the last page). Throws {@link FileError} if the list does
   * not advance.
   */
  take(first: string | undefined, next: string | null): void {
    const isRepeated = first !== undefined && first === this.#first;
    if (isRepeated || (next !== null && this.#asked.has(next))) {
      throw this.#broken('the server returns the same part of the list again');
    }
    this.#first = first;
    if (next !== null) this.#asked.add(next);
  }

  /** The error for a page that is not the last and has no continuation token. */
  withoutNext(): FileError {
    return this.#broken('the server cuts the list short and does not say where it continues');
  }

  #broken(why: string): FileError {
    const path = this.#location;
    return new FileError({ path }, `${path} cannot be listed: ${why}. Name the files or shards themselves instead.`);
  }
}
