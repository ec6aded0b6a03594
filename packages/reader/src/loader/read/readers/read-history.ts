import { storageReadBytes } from '../storage-reads.js';
import { CheckedSamples } from './checked-samples.js';

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
  /** Number of bytes that had been read from storage when the last epoch began, or 0. */
  #storageBefore = 0;
  /** Samples that need no further check. */
  readonly checked: CheckedSamples;

  /** `samples`: number of samples of each shard. */
  constructor(datasetBytes: number, samples: ArrayLike<number>) {
    this.#datasetBytes = datasetBytes;
    this.checked = new CheckedSamples(samples);
  }

  /** Called when the current epoch has been read to its end. */
  end(): void {
    this.#hasReadAll ||= this.#isReadingAll;
    this.#isReadingAll = false;
  }

  /** Called when an epoch begins. `whole` is true if it is read from its first sample. Returns whether the epoch before was cached. */
  begin(whole: boolean): boolean {
    const hasReadAll = this.#hasReadAll;
    const before = this.#storageBefore;
    this.#storageBefore = storageReadBytes();
    this.#isReadingAll = whole;
    const most = OTHER_STORAGE_BYTES + this.#datasetBytes * MOST_FROM_STORAGE;
    return hasReadAll && this.#storageBefore - before <= most;
  }
}
