import type { EpochPlan, LastBatch, PlannedBatch, PlannedBlock } from '../order/batches.js';
import type { BucketPlace, BucketRows, OwnSample } from '../order/bucket-rows.js';
import type { FoundSample } from '../order/order.js';
import { type BucketBatch, batchCount, bucketBatches, dealBatch, lookBack } from './batches.js';

export interface BucketPlanOptions {
  /** The plan for the samples that this rank reads from `place` on: exactly its own positions. */
  readonly own: EpochPlan;
  /** Returns the plan for the samples that all ranks together read from a position on. */
  all(position: number): EpochPlan;
  /** Returns the number of a sample's size. */
  sizeOf(source: number, pass: number, number: number): number;
  /** Number of sizes. */
  readonly sizes: number;
  readonly rank: number;
  readonly worldSize: number;
  readonly globalBatch: number;
  readonly lastBatch: LastBatch;
  /** Where to resume. Default: at the beginning. */
  readonly place?: BucketPlace | undefined;
  /** Number of samples of a whole epoch by size; null if they are known only after the epoch was walked. */
  readonly perSize: ArrayLike<number> | null;
  /** Throws the error for waiting samples that do not exist. */
  notThere(): never;
}

/** {@link EpochPlan}, and the batches of all ranks together. */
export interface BucketPlan extends EpochPlan {
  every(): Generator<BucketBatch, undefined>;
}

/** Plans a rank's part of an epoch in batches of one size. Batches without rows only show which samples were passed. */
export function planBuckets(options: BucketPlanOptions): BucketPlan {
  const { own, rank, worldSize, globalBatch, lastBatch, place, sizes } = options;
  const { samples } = own;
  const batches = function* (): Generator<BucketBatch, undefined> {
    const bucketsAt = bucketsOf(options);
    const waiting = place && (lookBack(place, bucketsAt) ?? options.notThere());
    yield* bucketBatches({ samples, sizes, bucketsAt, globalBatch, lastBatch, start: place, waiting });
  };
  const isWhole = (place?.step ?? 0) === 0;
  return {
    samples,
    get batches() {
      if (isWhole && options.perSize !== null) return batchCount(options.perSize, globalBatch, lastBatch);
      let count = 0;
      for (const _ of batches()) count++;
      return count;
    },
    get isEmpty() {
      return batches().next().done === true;
    },
    batchSize: globalBatch / worldSize,
    lastBatch,
    unit: own.unit,
    maxLiveBlocks: own.maxLiveBlocks,
    blocks: () => own.blocks(),
    at: (position) => own.at(position),
    under: own,
    every: batches,
    *rows(): Generator<PlannedBatch, undefined> {
      const walk = new OwnWalk(own, { from: place?.position ?? 0, rank, worldSize });
      let index = 0;
      for (const batch of batches()) {
        const walked = walk.to(batch.place.position);
        yield rowsOf(batch, walked, { index, rank, worldSize, walk, at: own.at });
        index++;
      }
      const walked = walk.to(samples);
      if (walked.length > 0) yield walkedOnly(walked, samples);
    },
  };
}

function rowsOf(
  batch: BucketBatch,
  walked: readonly OwnSample[],
  part: Pick<BucketPlanOptions, 'rank' | 'worldSize'> & Pick<EpochPlan, 'at'> & { index: number; walk: OwnWalk },
): PlannedBatch {
  const { rank, worldSize, walk } = part;
  const { positions, real, bucket, place } = batch;
  const { rows, real: own } = dealBatch(batch, worldSize)[rank]!;
  const block = new Int32Array(rows.length);
  const item = new Int32Array(rows.length);
  const valid = new Uint8Array(rows.length).fill(1, 0, own);
  const singles: FoundSample[] = [];
  rows.forEach((i, row) => {
    const sample = walk.waiting.get(positions[i]!);
    if (sample === undefined) block[row] = -singles.push(part.at(positions[i]!));
    else {
      block[row] = sample.block;
      item[row] = sample.item;
    }
  });
  const kept = new Set(rows.slice(0, own));
  const given: OwnSample[] = [];
  for (let i = 0; i < real; i++) {
    const sample = walk.waiting.get(positions[i]!);
    if (sample === undefined) continue;
    if (!kept.has(i)) given.push(sample);
    walk.waiting.delete(positions[i]!);
  }
  const of: BucketRows = { bucket, place, walked, given, singles };
  return { index: part.index, block, item, valid, position: place.position, bucket: of };
}

function walkedOnly(walked: readonly OwnSample[], position: number): PlannedBatch {
  const none = new Int32Array(0);
  const place = { step: 0, position, waiting: [] };
  const bucket = { bucket: 0, place, walked, given: [], singles: [] };
  return { index: -1, block: none, item: none, valid: new Uint8Array(0), position, bucket };
}

/** A rank's own samples in the order of their positions. */
class OwnWalk {
  /** Waiting samples by position. */
  readonly waiting = new Map<number, OwnSample>();
  readonly #rows: Generator<PlannedBatch, undefined>;
  readonly #worldSize: number;
  #next: number;
  #batch: PlannedBatch | undefined;
  #row = 0;

  constructor(own: EpochPlan, { from, rank, worldSize }: { from: number; rank: number; worldSize: number }) {
    this.#rows = own.rows();
    this.#worldSize = worldSize;
    this.#next = from + ((((rank - from) % worldSize) + worldSize) % worldSize);
  }

  /** Moves up to a position, which is not included. Returns the samples that it passed, which wait from now on. */
  to(position: number): OwnSample[] {
    const walked: OwnSample[] = [];
    for (; this.#next < position; this.#next += this.#worldSize) {
      while (this.#batch === undefined || this.#row === this.#batch.block.length) {
        this.#batch = this.#rows.next().value!;
        this.#row = 0;
      }
      const sample = { block: this.#batch.block[this.#row]!, item: this.#batch.item[this.#row]! };
      this.#row++;
      walked.push(sample);
      this.waiting.set(this.#next, sample);
    }
    return walked;
  }
}

/** Returns the sizes of the samples in ranges of positions. Consecutive ranges are fastest. */
function bucketsOf({ all, sizeOf }: BucketPlanOptions): (from: number, to: number) => Uint8Array {
  let walk: { next: number; take(count: number): Uint8Array } | undefined;
  return (from, to) => {
    if (walk?.next !== from) walk = sizeWalk(all(from), from, sizeOf);
    return walk.take(to - from);
  };
}

function sizeWalk(plan: EpochPlan, from: number, sizeOf: BucketPlanOptions['sizeOf']) {
  const rows = plan.rows();
  const blocks = plan.blocks();
  const live = new Map<number, { readonly block: PlannedBlock; left: number }>();
  let batch: PlannedBatch | undefined;
  let row = 0;
  return {
    next: from,
    take(count: number): Uint8Array {
      const found = new Uint8Array(count);
      for (let i = 0; i < count; i++) {
        while (batch === undefined || row === batch.block.length) {
          batch = rows.next().value!;
          row = 0;
        }
        const ordinal = batch.block[row]!;
        let one = live.get(ordinal);
        if (one === undefined) {
          const block = blocks.next().value!;
          one = { block, left: block.uses };
          live.set(ordinal, one);
        }
        const { source, pass, samples } = one.block;
        found[i] = sizeOf(source, pass, samples[batch.item[row]!]!);
        row++;
        one.left--;
        if (one.left === 0) live.delete(ordinal);
      }
      this.next += count;
      return found;
    },
  };
}
