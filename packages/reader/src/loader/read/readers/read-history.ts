import { storageReadBytes } from '../storage-reads.js';

/**
 * An epoch counts as cached if the process has read at most this share of the dataset's bytes from storage, including
 * everything else that it reads.
 */
const MOST_FROM_STORAGE = 1 / 64;
const OTHER_STORAGE_BYTES = 2 ** 24;

/** Predicts the reads of later epochs from those so far. */
export class ReadHistory {
  readonly #datasetBytes: number;
  /**
   * Whether an epoch was read from its first sample to its last; and whether the current one is read from its first
   * sample.
   */
  #hasReadAll = false;
  #isReadingAll = false;
  /** Whether all samples were delivered. */
  #hasDeliveredAll = false;
  /** Number of bytes that had been read from storage when the last epoch began, or 0. */
  #storageBefore = 0;

  readonly #hasBad: () => boolean;

  /** `hasBad`: whether a sample was bad so far. */
  constructor(datasetBytes: number, hasBad: () => boolean) {
    this.#datasetBytes = datasetBytes;
    this.#hasBad = hasBad;
  }

  /** Called when the current epoch has been read to its end. */
  end(): void {
    this.#hasReadAll ||= this.#isReadingAll;
    this.#isReadingAll = false;
  }

  /**
   * Called when the last batch of an epoch with all samples was delivered. Its reading ended earlier, when some of its
   * samples had not been checked yet.
   */
  delivered(): void {
    this.#hasDeliveredAll = true;
  }

  /**
   * Called when an epoch begins. `whole` is true if it is read from its first sample. `isIntact`: all samples were
   * delivered, and none was bad. A sample that was skipped for its checksum would otherwise be delivered later.
   */
  begin(whole: boolean): { readonly isIntact: boolean; readonly wasCached: boolean } {
    const hasReadAll = this.#hasReadAll;
    const before = this.#storageBefore;
    this.#storageBefore = storageReadBytes();
    this.#isReadingAll = whole;
    const most = OTHER_STORAGE_BYTES + this.#datasetBytes * MOST_FROM_STORAGE;
    return {
      isIntact: this.#hasDeliveredAll && !this.#hasBad(),
      wasCached: hasReadAll && this.#storageBefore - before <= most,
    };
  }
}
