import { total } from '@shardtool/base';
import type { LastBatch } from '../order/batches.js';
import type { BucketPlace } from '../order/bucket-rows.js';

/** One batch of all ranks together. */
export interface BucketBatch {
  /** Number of the batch's size. */
  readonly bucket: number;
  /** Positions of the rows in the base order, ascending. Rows from `real` on only pad the batch. */
  readonly positions: readonly number[];
  readonly real: number;
  /** Position after this batch. */
  readonly place: BucketPlace;
}

export interface BucketOrderOptions {
  /** Number of positions of the base order in the epoch. */
  readonly samples: number;
  /** Number of sizes. */
  readonly sizes: number;
  /**
   * Returns the numbers of the sizes of the samples at the positions `from` to `to - 1`. It is called for consecutive
   * ranges.
   */
  bucketsAt(from: number, to: number): ArrayLike<number>;
  /** Rows of a batch over all ranks. */
  readonly globalBatch: number;
  readonly lastBatch: LastBatch;
  /** Where to resume. Default: at the beginning. */
  readonly start?: BucketPlace | undefined;
  /** For each size, the positions that wait at `start`: see {@link lookBack}. */
  readonly waiting?: readonly (readonly number[])[] | undefined;
}

/** Number of positions that are processed at a time. */
const STRETCH = 1024;
/** Number of positions of the first look back. Each further one doubles it. */
const FIRST_LOOK = 4096;

/**
 * Yields the batches of an epoch in the order in which they become full. A sample waits with the others of its size.
 * When as many wait as a batch has rows, they are the next batch. The result depends only on the base order and the
 * samples' sizes.
 */
export function* bucketBatches(options: BucketOrderOptions): Generator<BucketBatch, undefined> {
  const { samples, sizes, globalBatch, lastBatch, start } = options;
  const waiting = Array.from({ length: sizes }, (_, b) => [...(options.waiting?.[b] ?? [])]);
  let step = start?.step ?? 0;
  let position = start?.position ?? 0;
  const placeNow = (): BucketPlace => ({ step, position, waiting: waiting.map(({ length }) => length) });
  const next = (bucket: number): BucketBatch => {
    const positions = waiting[bucket]!.splice(0, globalBatch);
    step++;
    return { bucket, positions, real: globalBatch, place: placeNow() };
  };
  // If batches are smaller than before, the waiting samples may already fill some batches.
  for (let b = 0; b < sizes; b++) while (waiting[b]!.length >= globalBatch) yield next(b);
  while (position < samples) {
    const from = position;
    const buckets = options.bucketsAt(from, Math.min(samples, from + STRETCH));
    for (let i = 0; i < buckets.length; i++) {
      const own = waiting[buckets[i]!]!;
      own.push(from + i);
      position = from + i + 1;
      if (own.length === globalBatch) yield next(buckets[i]!);
    }
  }
  if (lastBatch === 'drop') return;
  for (let b = 0; b < sizes; b++) {
    const left = waiting[b]!;
    const real = left.length;
    if (real === 0) continue;
    waiting[b] = [];
    step++;
    const rows = lastBatch === 'partial' ? real : globalBatch;
    const positions = Array.from({ length: rows }, (_, i) => left[i % real]!);
    yield { bucket: b, positions, real, place: placeNow() };
  }
}

/**
 * Returns the samples that wait at a position: for each size, the last ones before it, ascending. Returns null if there
 * are fewer samples than that, because the position then does not belong to this order.
 */
export function lookBack(
  { position, waiting }: BucketPlace,
  bucketsAt: BucketOrderOptions['bucketsAt'],
): number[][] | null {
  const found = waiting.map((): number[] => []);
  let missing = total(waiting);
  let to = position;
  for (let look = FIRST_LOOK; missing > 0; look *= 2) {
    if (to === 0) return null;
    const from = Math.max(0, to - look);
    const buckets = bucketsAt(from, to);
    for (let g = to - 1; g >= from && missing > 0; g--) {
      const b = buckets[g - from]!;
      if (found[b]!.length === waiting[b]) continue;
      found[b]!.push(g);
      missing--;
    }
    to = from;
  }
  return found.map((positions) => positions.reverse());
}

/**
 * Returns the number of batches of an epoch or of the rest of it. It depends only on the number of samples per size.
 */
export function batchCount(perSize: ArrayLike<number>, globalBatch: number, lastBatch: LastBatch): number {
  let batches = 0;
  for (let b = 0; b < perSize.length; b++) {
    batches += lastBatch === 'drop' ? Math.floor(perSize[b]! / globalBatch) : Math.ceil(perSize[b]! / globalBatch);
  }
  return batches;
}

/** A rank's rows of a batch. */
export interface DealtRows {
  /** Indices among the batch's rows, ascending. */
  readonly rows: readonly number[];
  /** Number of rows that count. They come first. */
  readonly real: number;
}

/**
 * Distributes the rows of a batch to the ranks. A rank keeps the rows that it reads itself (position modulo the number
 * of ranks), up to its share. Surplus rows are given, in order, to the ranks that have fewer, starting with rank 0. A
 * rank without rows gets the batch's first row, which does not count, so that every rank takes every step.
 */
export function dealBatch(
  { positions, real }: Pick<BucketBatch, 'positions' | 'real'>,
  worldSize: number,
): DealtRows[] {
  const size = positions.length;
  const share = (rank: number) => Math.floor(size / worldSize) + (rank < size % worldSize ? 1 : 0);
  const rows = Array.from({ length: worldSize }, (): number[] => []);
  const over: number[] = [];
  for (let i = 0; i < size; i++) {
    const rank = positions[i]! % worldSize;
    if (rows[rank]!.length < share(rank)) rows[rank]!.push(i);
    else over.push(i);
  }
  let rank = 0;
  for (const i of over) {
    while (rows[rank]!.length === share(rank)) rank++;
    rows[rank]!.push(i);
  }
  return rows.map((own) => {
    if (own.length === 0) return { rows: [0], real: 0 };
    own.sort((a, b) => a - b);
    return { rows: own, real: own.filter((i) => i < real).length };
  });
}
