import { OptionError } from '@shardtool/base';
import { type PlannedBlock, plannedBlocks } from './blocks.js';
import { checkOrderOptions, checkWhole, epochOrder, type OrderOptions, sampleAt } from './epoch-order.js';
import { epochSpan, locate, modulo } from './legs.js';
import { rememberLast } from './remember-last.js';
import { type PlannedBatch, plannedBatches } from './rows.js';
import { type Unit, unitOf } from './units.js';

export type { PlannedBlock } from './blocks.js';
export type { PlannedBatch } from './rows.js';
export type { Unit } from './units.js';

/**
 * What becomes of the rows that do not fill a last batch: `drop` leaves them out; `pad` fills up with the first samples
 * of the epoch, marked as not valid; `partial` makes the last batch smaller.
 */
export type LastBatch = 'pad' | 'drop' | 'partial';

export interface PlanOptions extends OrderOptions {
  /** Default 0. */
  readonly rank?: number | undefined;
  /** Default 1. Must divide `streams` and `globalBatch`. */
  readonly worldSize?: number | undefined;
  /** Rows of a batch over all ranks. */
  readonly globalBatch: number;
  /** Default `partial` alone, `pad` with more than one rank. */
  readonly lastBatch?: LastBatch | undefined;
  /** Samples of the epoch that are already delivered, over all ranks. Default 0. */
  readonly position?: number | undefined;
  /** An epoch is exactly so many samples of the endless sequence of passes; by default one pass. */
  readonly epochSamples?: number | undefined;
  /** The rank's own positions and no others, up to the last of the epoch: then a last batch may have no row. */
  readonly ownOnly?: boolean | undefined;
}

/** A sample of the line, and the pass over it in which it comes. */
export interface FoundSample {
  readonly pass: number;
  readonly number: number;
}

/** What one rank reads and delivers in the rest of an epoch. Pure data: the iterators start anew with each call. */
export interface EpochPlan {
  /** Samples in the epoch, over all ranks. */
  readonly samples: number;
  /** Batches that are left, the same on every rank. */
  readonly batches: number;
  /** Whether there are none. */
  readonly isEmpty: boolean;
  /** Rows of this rank's batches; of the last one of `partial` possibly fewer. */
  readonly batchSize: number;
  readonly lastBatch: LastBatch;
  readonly unit: Unit;
  /** Blocks in memory at once: one a stream, and one that is being read. */
  readonly maxLiveBlocks: number;
  /** The blocks in the order in which this rank first needs them. */
  blocks(): Generator<PlannedBlock, undefined>;
  /** The batches; their rows name blocks by ordinal. */
  rows(): Generator<PlannedBatch, undefined>;
  /** The sample at a position of the epoch, of any rank. For looking, not for iterating. */
  at(position: number): FoundSample;
  /** Where batches are made of samples that wait: the order in which they are read. */
  readonly under?: EpochPlan;
}

/**
 * Plans one rank's part of an epoch. The order of all ranks together is a pure function of {@link OrderOptions}; a rank
 * owns every worldSize-th position of it. Cheap: the line of samples is laid when a block is asked for.
 * Throws {@link OptionError} for values that are not allowed.
 */
export function planEpoch(options: PlanOptions): EpochPlan {
  const { counts, streams, blockSamples, globalBatch, rank = 0, worldSize = 1, position = 0 } = options;
  checkOrderOptions(options);
  checkWhole('worldSize', worldSize, 1);
  checkWhole('rank', rank, 0, worldSize - 1);
  checkWhole('globalBatch', globalBatch, 1);
  checkWorldSize(worldSize, streams, globalBatch);
  if (options.epochSamples !== undefined) checkWhole('samplesPerEpoch', options.epochSamples, 1);
  const lastBatch = options.lastBatch ?? (worldSize === 1 ? 'partial' : 'pad');

  let passSamples = 0;
  for (let k = 0; k < counts.length; k++) passSamples += counts[k]!;
  const span = epochSpan(passSamples, options.epoch, options.epochSamples);
  checkWhole('position', position, 0, span.samples);

  const left = span.samples - position;
  const batches = lastBatch === 'drop' ? Math.floor(left / globalBatch) : Math.ceil(left / globalBatch);
  const batchSize = globalBatch / worldSize;
  const first = position + modulo(rank - position, worldSize);
  const owned = Math.max(0, Math.ceil((span.samples - first) / worldSize));
  const rows = options.ownOnly === true ? owned : rowsOf(lastBatch, batches, batchSize, owned);
  const range = { span, start: position, rows, rank, worldSize, cut: { samples: passSamples, streams, blockSamples } };
  const unit = options.unit ?? unitOf(counts, streams, blockSamples);
  // An order holds the permuted line, so only the latest pass is kept.
  const orderOf = rememberLast((pass) => epochOrder({ ...options, unit, epoch: pass }));
  return {
    samples: span.samples,
    batches,
    isEmpty: batches === 0,
    batchSize,
    lastBatch,
    unit,
    maxLiveBlocks: streams / worldSize + 1,
    blocks: () => plannedBlocks(range, orderOf),
    rows: () => plannedBatches(range, { batches, batchSize, globalBatch }),
    at(at) {
      const { pass, position: place } = locate(span, at);
      return { pass, number: sampleAt(orderOf(pass), place) };
    },
  };
}

/** Rows of a rank that still owns `owned` samples. With `partial`, every rank has at least one row in each batch. */
export function rowsOf(lastBatch: LastBatch, batches: number, batchSize: number, owned: number): number {
  if (lastBatch !== 'partial' || batches === 0) return batches * batchSize;
  return Math.max(owned, (batches - 1) * batchSize + 1);
}

/** The numbers of ranks that divide both, rising: under each of them the order of all ranks together is the same. */
export function legalWorldSizes(streams: number, globalBatch: number): number[] {
  const legal: number[] = [];
  for (let w = 1; w <= Math.min(streams, globalBatch); w++) {
    if (streams % w === 0 && globalBatch % w === 0) legal.push(w);
  }
  return legal;
}

function checkWorldSize(worldSize: number, streams: number, globalBatch: number): void {
  if (streams % worldSize === 0 && globalBatch % worldSize === 0) return;
  throw new OptionError(
    {},
    `${worldSize} ranks cannot share ${streams} streams and batches of ${globalBatch} rows evenly: use ` +
      `${legalWorldSizes(streams, globalBatch).join(', ')} ranks, or set other streams or another batch size.`,
  );
}
