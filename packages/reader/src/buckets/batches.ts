import type { LastBatch } from '../order/batches.js';
import type { BucketPlace } from '../order/bucket-rows.js';

/** One batch of all ranks together. */
export interface BucketBatch {
  /** Number of its size. */
  readonly bucket: number;
  /** Its rows by position in the base order, rising; rows from `real` on only fill it up. */
  readonly positions: readonly number[];
  readonly real: number;
  /** Behind this batch. */
  readonly place: BucketPlace;
}

export interface BucketOrderOptions {
  /** Positions of the base order in the epoch. */
  readonly samples: number;
  /** How many sizes there are. */
  readonly sizes: number;
  /** The number of the size of each sample at the positions `from` to `to - 1`. Asked for stretches that follow each other. */
  bucketsAt(from: number, to: number): ArrayLike<number>;
  /** Rows of a batch over all ranks. */
  readonly globalBatch: number;
  readonly lastBatch: LastBatch;
  /** Where to go on; by default at the beginning. */
  readonly start?: BucketPlace | undefined;
  /** Of each size, the positions that wait at `start`: see {@link lookBack}. */
  readonly waiting?: readonly (readonly number[])[] | undefined;
}

/** So many positions are looked at together. */
const STRETCH = 1024;
/** A look back begins with so many, and goes on with twice as many each time. */
const FIRST_LOOK = 4096;

/**
 * The batches of an epoch in the order in which they fill up: a sample joins those of its size that wait, and when they are
 * as many as a batch has rows they are the next one. A pure function of the base order and the samples' sizes.
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
  // With smaller batches than before, those that wait may be some batches already.
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
 * The samples that wait at a place: of each size the last ones before its position, rising. Null where there are not so many:
 * then the place is none of this order.
 */
export function lookBack(
  { position, waiting }: BucketPlace,
  bucketsAt: BucketOrderOptions['bucketsAt'],
): number[][] | null {
  const found = waiting.map((): number[] => []);
  let missing = waiting.reduce((a, b) => a + b, 0);
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

/** Batches of an epoch, or of what is left of it: known from the samples of each size alone. */
export function batchCount(perSize: ArrayLike<number>, globalBatch: number, lastBatch: LastBatch): number {
  let batches = 0;
  for (let b = 0; b < perSize.length; b++) {
    batches += lastBatch === 'drop' ? Math.floor(perSize[b]! / globalBatch) : Math.ceil(perSize[b]! / globalBatch);
  }
  return batches;
}

/** A rank's rows of a batch. */
export interface DealtRows {
  /** Indexes among the batch's rows, rising. */
  readonly rows: readonly number[];
  /** How many of them, the first ones, count. */
  readonly real: number;
}

/**
 * Who gets which row of a batch. A rank keeps what it reads itself (its position modulo the number of ranks) as far as its
 * share goes; rows that are over go, in order, to the ranks that have less, from rank 0 on. A rank that is left with none
 * gets the batch's first row, which does not count, so that every rank has each step.
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
