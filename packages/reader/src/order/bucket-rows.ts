import type { FoundSample } from './batches.js';

/** A position in an epoch of buckets: all that is needed to go on from there, the same on every rank. */
export interface BucketPlace {
  /** Batches of the epoch that were delivered. */
  readonly step: number;
  /** Of the base order: behind the last sample of the last of them. */
  readonly position: number;
  /** By size, samples before that position that still wait for their batch. */
  readonly waiting: readonly number[];
}

/** Where an own sample is in the blocks that this rank reads. */
export interface OwnSample {
  readonly block: number;
  readonly item: number;
}

/** What a batch of one size is besides its rows. */
export interface BucketRows {
  /** Number of its size. */
  readonly bucket: number;
  /** Behind the batch. */
  readonly place: BucketPlace;
  /** Own samples between the batch before and this one, in their order: those of the batch, and those that wait on. */
  readonly walked: readonly OwnSample[];
  /** Own samples that come in another rank's rows of this batch. */
  readonly given: readonly OwnSample[];
  /** Samples outside this rank's blocks: row r shows `singles[-1 - block[r]]` where its block is negative. */
  readonly singles: readonly FoundSample[];
}
