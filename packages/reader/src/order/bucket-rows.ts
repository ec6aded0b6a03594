import type { FoundSample } from './order.js';

/** A position in an epoch of buckets: everything that is needed to resume there. It is the same on every rank. */
export interface BucketPlace {
  /** Number of batches of the epoch that were delivered. */
  readonly step: number;
  /** Position in the base order after the last sample of those batches. */
  readonly position: number;
  /** For each size, the number of samples before that position that still wait for their batch. */
  readonly waiting: readonly number[];
}

/** Position of a rank's own sample in the blocks that it reads. */
export interface OwnSample {
  readonly block: number;
  readonly item: number;
}

/** Properties of a batch of one size, in addition to its rows. */
export interface BucketRows {
  /** Number of the batch's size. */
  readonly bucket: number;
  /** Position after the batch. */
  readonly place: BucketPlace;
  /**
   * Own samples between the previous batch and this one, in their order: those of the batch, and those that keep
   * waiting.
   */
  readonly walked: readonly OwnSample[];
  /** Own samples that are in another rank's rows of this batch. */
  readonly given: readonly OwnSample[];
  /** Samples outside this rank's blocks. If the block of row r is negative, the row shows `singles[-1 - block[r]]`. */
  readonly singles: readonly FoundSample[];
}
