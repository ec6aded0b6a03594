import { storageReadBytes } from '../storage-reads.js';

/**
 * An epoch counts as cached if at most this many bytes came from storage: a part of the dataset, and everything else
 * that the process reads.
 */
const MOST_FROM_STORAGE = 1 / 64;
const OTHER_STORAGE_BYTES = 2 ** 24;

/** Predicts the reads of later epochs from those so far. */
export class ReadHistory {
  readonly #datasetBytes: number;
  /** An epoch was read from its first sample to its last; and whether the one under way is. */
  #hasReadAll = false;
  #isReadingAll = false;
  /** Bytes that had been read from storage when the last epoch began, or 0. */
  #storageBefore = 0;

  constructor(datasetBytes: number) {
    this.#datasetBytes = datasetBytes;
  }

  /** The epoch that was begun last has been read to its end. */
  end(): void {
    this.#hasReadAll ||= this.#isReadingAll;
    this.#isReadingAll = false;
  }

  /** An epoch begins, `whole` from its first sample. */
  begin(whole: boolean): { readonly hasReadAll: boolean; readonly wasCached: boolean } {
    const hasReadAll = this.#hasReadAll;
    const before = this.#storageBefore;
    this.#storageBefore = storageReadBytes();
    this.#isReadingAll = whole;
    const most = OTHER_STORAGE_BYTES + this.#datasetBytes * MOST_FROM_STORAGE;
    return { hasReadAll, wasCached: hasReadAll && this.#storageBefore - before <= most };
  }
}
