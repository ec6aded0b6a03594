import type { Piece, SampleNumbers } from './units.js';

/** A sample: the index of its dataset in a mixture (otherwise 0), the pass over the dataset, and its number in the pass. */
export interface FoundSample {
  readonly source: number;
  readonly pass: number;
  readonly number: number;
}

/** A block that a rank reads as a whole. */
export interface PlannedBlock {
  /** 0, 1, 2, ... in the order in which blocks are first needed. */
  readonly ordinal: number;
  /** Index of the dataset in a mixture, otherwise 0. Shards and sample numbers count within this dataset. */
  readonly source: number;
  /** The pass over the dataset. It is the epoch unless `epochSamples` is set, and part of each sample's random numbers. */
  readonly pass: number;
  /** Sample numbers, in the order in which the samples are consumed. */
  readonly samples: SampleNumbers;
  /** Index of the first sample that is used. It is above 0 only if an epoch is resumed in the middle. */
  readonly from: number;
  /** The reads of the block, in the order of the line. */
  readonly pieces: readonly Piece[];
  /** Number of rows that refer to this block. */
  readonly uses: number;
  /** With repeated samples: how often each comes in a pass, and for each of `samples`, which repetition it is, from 0. */
  readonly repeats?: { readonly each: number; readonly of: Uint32Array };
}

/** The part of one rank: the first `rows` of its own positions, counted from `position`. It owns every worldSize-th position. */
export interface RankPart {
  readonly rank: number;
  readonly worldSize: number;
  /** After the end of the order, its first positions are repeated. */
  readonly position: number;
  readonly rows: number;
}

/** Columns of rows, with one entry per row. */
export interface RowColumns {
  /** Ordinal of the block. */
  readonly block: Int32Array;
  /** Index among the block's samples. */
  readonly item: Int32Array;
  /** 0 if a sample is repeated only to fill the batch. */
  readonly valid: Uint8Array;
}

/** The rows of a part, some at a time. */
export interface RowSource {
  /** Fills the rows `from` to `from + count - 1`. The part must have at least that many rows left. */
  take(columns: RowColumns, from: number, count: number): void;
}

/**
 * The order of an epoch over all ranks. `passesOver` makes one of a dataset, `mix` makes one of several orders, and `planBatches` divides
 * any order into batches. An order is pure data: each call returns a new iterator.
 */
export interface Order {
  /** Positions of the epoch. */
  readonly length: number;
  /** Returns the sample at a position. For single look-ups, not for iterating. */
  at(position: number): FoundSample;
  /** Returns the sample at a position as a block with one sample. */
  single(position: number): Omit<PlannedBlock, 'ordinal'>;
  /** Yields the blocks of a part, in the order in which they are first needed. */
  blocks(part: RankPart): Generator<PlannedBlock, undefined>;
  /** Returns the rows of a part. Blocks are numbered by `ordinals`, which several orders may share. */
  rows(part: RankPart, ordinals?: { next: number }): RowSource;
  /** Returns the number of blocks that a rank has in memory at a time, without the block that is being read. */
  liveBlocks(worldSize: number): number;
}
