import { countOf, OptionError } from '@shardtool/base';
import type { BucketRows } from './bucket-rows.js';
import { checkOrderOptions, checkWhole, type OrderOptions } from './epoch-order.js';
import { epochSpan, modulo } from './legs.js';
import type { FoundSample, Order, PlannedBlock, RowColumns } from './order.js';
import { passesOver } from './passes.js';
import { repeatedPasses } from './repeats.js';
import { type Unit, unitOf } from './units.js';

export type { PlannedBlock } from './order.js';
export type { Unit } from './units.js';

/**
 * How rows that do not fill a last batch are handled: `drop` omits them; `pad` fills the batch with the first samples
 * of the epoch, marked as not valid; `partial` makes the last batch smaller.
 */
export type LastBatch = 'pad' | 'drop' | 'partial';

/** The rank of a plan, and how the plan is divided into batches. */
export interface BatchOptions {
  /** Default: 0. */
  readonly rank?: number | undefined;
  /** Default: 1. Must divide `streams` and `globalBatch`. */
  readonly worldSize?: number | undefined;
  /** Rows of a batch over all ranks. */
  readonly globalBatch: number;
  /** Default: `partial`. With more than one rank: `pad`. */
  readonly lastBatch?: LastBatch | undefined;
  /** Samples of the epoch that are already delivered, over all ranks. Default: 0. */
  readonly position?: number | undefined;
  /** True for exactly the rank's own positions up to the end of the epoch. A last batch may then have no rows. */
  readonly ownOnly?: boolean | undefined;
}

export interface PlanOptions extends OrderOptions, BatchOptions {
  /** Number of samples of an epoch, which are taken from the endless sequence of passes. Default: one pass. */
  readonly epochSamples?: number | undefined;
  /** Number of times that a sample comes in a row in every pass: see {@link repeatedPasses}. Default: 1. */
  readonly repeats?: number | undefined;
}

/** One batch of one rank. */
export interface PlannedBatch extends RowColumns {
  /** 0, 1, 2, ... counted from the start of the plan. */
  readonly index: number;
  /** Samples of the epoch that are delivered with this batch, over all ranks. */
  readonly position: number;
  /** Additional properties of a batch of one size. */
  readonly bucket?: BucketRows;
}

/**
 * What one rank reads and delivers in the rest of an epoch. The plan is pure data: each call returns a new iterator.
 */
export interface EpochPlan {
  /** Samples in the epoch, over all ranks. */
  readonly samples: number;
  /** Number of remaining batches, the same on every rank. */
  readonly batches: number;
  /** True if no batches remain. */
  readonly isEmpty: boolean;
  /** Rows of this rank's batches. With `partial`, the last batch may have fewer. */
  readonly batchSize: number;
  readonly lastBatch: LastBatch;
  readonly unit: Unit;
  /** Number of blocks in memory at a time, including the block that is being read. */
  readonly maxLiveBlocks: number;
  /** Yields the blocks in the order in which this rank first needs them. */
  blocks(): Generator<PlannedBlock, undefined>;
  /** Yields the batches. Their rows refer to blocks by ordinal. */
  rows(): Generator<PlannedBatch, undefined>;
  /** Returns the sample at a position of the epoch, of any rank. For single look-ups, not for iterating. */
  at(position: number): FoundSample;
  /** If batches are made of waiting samples: the order in which samples are read. */
  readonly under?: EpochPlan;
}

/**
 * Plans one rank's part of an epoch. The order of all ranks together depends only on {@link OrderOptions}, and a rank
 * owns every worldSize-th position of it. The call is cheap: the line of samples is computed when a block is requested.
 * Throws {@link OptionError} for values that are not allowed.
 */
export function planEpoch(options: PlanOptions): EpochPlan {
  const { counts, streams, blockSamples, globalBatch, worldSize = 1 } = options;
  checkOrderOptions(options);
  checkBatches(options);
  checkWorldSize(worldSize, streams, globalBatch);
  if (options.epochSamples !== undefined) checkWhole('samplesPerEpoch', options.epochSamples, 1);
  let passSamples = 0;
  for (let k = 0; k < counts.length; k++) passSamples += counts[k]!;
  const { repeats = 1 } = options;
  checkWhole('repeats', repeats, 1);
  const span = epochSpan(passSamples * repeats, options.epoch, options.epochSamples);
  const unit = options.unit ?? unitOf(counts, streams, blockSamples);
  const passes = { ...options, unit };
  const order = repeats === 1 ? passesOver(passes, span) : repeatedPasses(passes, span, repeats);
  return planBatches(order, unit, options);
}

/** Divides any order into the batches of a rank. Throws {@link OptionError} for a position after the end of the order. */
export function planBatches(order: Order, unit: Unit, options: BatchOptions): EpochPlan {
  const { globalBatch, rank = 0, worldSize = 1, position = 0 } = options;
  const { length } = order;
  checkWhole('position', position, 0, length);
  const lastBatch = options.lastBatch ?? (worldSize === 1 ? 'partial' : 'pad');
  const left = length - position;
  const batches = lastBatch === 'drop' ? Math.floor(left / globalBatch) : Math.ceil(left / globalBatch);
  const batchSize = globalBatch / worldSize;
  const first = position + modulo(rank - position, worldSize);
  const owned = Math.max(0, Math.ceil((length - first) / worldSize));
  const rows = options.ownOnly === true ? owned : rowsOf(lastBatch, batches, batchSize, owned);
  const part = { rank, worldSize, position, rows };
  return {
    samples: length,
    batches,
    isEmpty: batches === 0,
    batchSize,
    lastBatch,
    unit,
    maxLiveBlocks: order.liveBlocks(worldSize) + 1,
    blocks: () => order.blocks(part),
    *rows(): Generator<PlannedBatch, undefined> {
      const source = order.rows(part);
      for (let index = 0; index < batches; index++) {
        const size = Math.min(batchSize, rows - index * batchSize);
        const columns = { block: new Int32Array(size), item: new Int32Array(size), valid: new Uint8Array(size) };
        source.take(columns, 0, size);
        yield { index, ...columns, position: Math.min(length, position + (index + 1) * globalBatch) };
      }
    },
    at: (at) => order.at(at),
  };
}

/** Throws {@link OptionError} if the rank, the number of ranks or the batch size is not allowed. */
export function checkBatches({ globalBatch, rank = 0, worldSize = 1 }: BatchOptions): void {
  checkWhole('worldSize', worldSize, 1);
  checkWhole('rank', rank, 0, worldSize - 1);
  checkWhole('globalBatch', globalBatch, 1);
}

/**
 * Returns the number of rows of a rank that still owns `owned` samples. With `partial`, every rank has at least one row
 * in each batch.
 */
function rowsOf(lastBatch: LastBatch, batches: number, batchSize: number, owned: number): number {
  if (lastBatch !== 'partial' || batches === 0) return batches * batchSize;
  return Math.max(owned, (batches - 1) * batchSize + 1);
}

/**
 * Returns the numbers of ranks that divide both, rising. For each of them, the order of all ranks together is the same.
 */
export function legalWorldSizes(streams: number, globalBatch: number): number[] {
  const legal: number[] = [];
  for (let w = 1; w <= Math.min(streams, globalBatch); w++) {
    if (streams % w === 0 && globalBatch % w === 0) legal.push(w);
  }
  return legal;
}

/** `1 rank`, `1, 2, 4 ranks`. */
function numbersOf(numbers: readonly number[], noun: string): string {
  return `${numbers.join(', ')} ${noun}${numbers.length === 1 && numbers[0] === 1 ? '' : 's'}`;
}

function checkWorldSize(worldSize: number, streams: number, globalBatch: number): void {
  if (streams % worldSize === 0 && globalBatch % worldSize === 0) return;
  throw new OptionError(
    {},
    `${countOf(worldSize, 'rank')} cannot share ${countOf(streams, 'stream')} and batches of ${countOf(globalBatch, 'row')} evenly: use ` +
      `${numbersOf(legalWorldSizes(streams, globalBatch), 'rank')}, or change streams or the batch size.`,
  );
}
