import { OptionError, option, sentence, total, totalOf, watchedCall } from '@shardtool/base';
import type { BucketBatch } from '../buckets/batches.js';
import { checkBuckets } from '../buckets/options.js';
import { checkDataset } from '../dataset/check-dataset.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import { checkOptions, type LoaderOptions } from '../loader/options.js';
import { setUpBuckets } from '../loader/setup/order/bucket-order.js';
import { setUpOrder } from '../loader/setup/order/order.js';
import type { LastBatch } from '../order/batches.js';
import { checkPlanOptions } from './plan-options.js';

/** Options of {@link planAspectBuckets}, which mean the same as for a loader. */
export type BucketsPlanOptions = Pick<
  LoaderOptions,
  | 'worldSize'
  | 'batchSize'
  | 'globalBatchSize'
  | 'lastBatch'
  | 'seed'
  | 'epoch'
  | 'classes'
  | 'keys'
  | 'where'
  | 'samplesPerEpoch'
  | 'streams'
  | 'blockSamples'
  | 'shuffleBufferSize'
  | 'shuffleUnit'
  | 'shuffle'
  | 'applyExifOrientation'
  | 'signal'
> &
  Required<Pick<LoaderOptions, 'aspectBuckets'>>;

/** Estimates for an epoch of batches of several sizes. Sizes of images are in pixels, sizes of memory in bytes. */
export interface BucketsReport {
  /** Number of samples of an epoch, over all ranks. */
  readonly samples: number;
  readonly worldSize: number;
  readonly batchSize: number;
  /** Batches of each rank. */
  readonly batches: number;
  readonly lastBatch: LastBatch;
  /** Sizes, the narrowest first. */
  readonly sizes: readonly {
    readonly width: number;
    readonly height: number;
    readonly samples: number;
    /** Share of the samples, and mean share of an image's pixels that is cropped away, from 0 to 1. */
    readonly share: number;
    readonly croppedAway: number;
  }[];
  /** Sizes to which too few samples are nearest. */
  readonly leftOut: readonly { readonly width: number; readonly height: number; readonly samples: number }[];
  /** Number of samples that wait for their batch on one rank, and their bytes. */
  readonly waiting: { readonly mean: number; readonly most: number; readonly mostBytes: number };
  /** Share of the rows that come from the streams of another rank, 0 to 1. */
  readonly handedOver: number;
  /** Rows of the last batches, over all ranks, for which no sample is left; with `drop`, samples that are dropped. */
  readonly unfilled: number;
}

/** Maximum number of positions that are followed to count waiting samples; it takes some seconds. */
const FOLLOWED = 2 ** 22;

/** Estimates the cost of batches of several sizes. Reads widths and heights from the indexes, and no shard. Throws OptionError. */
export async function planAspectBuckets(dataset: StoredDataset, options: BucketsPlanOptions): Promise<BucketsReport> {
  checkDataset('planAspectBuckets', dataset);
  checkPlanOptions('planAspectBuckets', options);
  if (options.aspectBuckets === undefined) {
    throw new OptionError(
      {},
      sentence`planAspectBuckets needs the option ${option('aspectBuckets')}: the sizes to plan.`,
    );
  }
  return watchedCall(options, () => plan(dataset, options));
}

async function plan(dataset: StoredDataset, options: BucketsPlanOptions): Promise<BucketsReport> {
  const { worldSize = 1 } = options;
  const checked = checkOptions({ ...options, worldSize, rank: 0 });
  const base = await setUpOrder(dataset, checked);
  const turns = checked.applyExifOrientation ?? true;
  const {
    order,
    sized,
    plan: batchesFrom,
  } = await setUpBuckets(dataset, base, checkBuckets(options.aspectBuckets), {
    ...checked,
    turns,
  });
  const place = { epoch: checked.epoch ?? 0, position: 0 };
  const { samples, batches, lastBatch } = order.plan(place);
  const all = total(sized.perSize);
  const { globalBatch } = order;
  const followed = follow(batchesFrom(place).every(), worldSize);
  const left = totalOf(sized.perSize, (count) => count % globalBatch);
  const missing = totalOf(sized.perSize, (count) => (globalBatch - (count % globalBatch)) % globalBatch);
  return {
    samples,
    worldSize,
    batchSize: order.batchSize,
    batches,
    lastBatch,
    sizes: sized.sizes.map(({ width, height }, b) => ({
      width,
      height,
      samples: sized.perSize[b]!,
      share: sized.perSize[b]! / all,
      croppedAway: 1 - sized.kept[b]!,
    })),
    leftOut: sized.leftOut,
    waiting: { ...followed.waiting, mostBytes: followed.waiting.most * dataset.meanSampleBytes },
    handedOver: followed.handedOver,
    unfilled: lastBatch === 'drop' ? left : missing,
  };
}

/** Follows batches, and counts the samples that wait after each batch and the rows that come from another rank. */
function follow(batches: Iterable<BucketBatch>, worldSize: number) {
  const delivered = new Float64Array(worldSize);
  const own = new Int32Array(worldSize);
  let [sum, count, most, over, rows] = [0, 0, 0, 0, 0];
  for (const { positions, real, place } of batches) {
    own.fill(0);
    for (let i = 0; i < real; i++) own[positions[i]! % worldSize]!++;
    const share = Math.ceil(positions.length / worldSize);
    for (let rank = 0; rank < worldSize; rank++) {
      over += Math.max(0, own[rank]! - share);
      delivered[rank]! += own[rank]!;
      const walked = Math.ceil((place.position - rank) / worldSize);
      const waits = walked - delivered[rank]!;
      sum += waits;
      count++;
      most = Math.max(most, waits);
    }
    rows += positions.length;
    if (place.position >= FOLLOWED) break;
  }
  return { waiting: { mean: sum / Math.max(1, count), most }, handedOver: over / Math.max(1, rows) };
}
