import type { CodecChoice } from '../codec/select.js';
import type { Place } from './progress.js';
import type { LoaderSetup } from './setup.js';

/** Describes the next iteration of a loader. Memory is in bytes. */
export interface LoaderInfo {
  /** The next epoch. */
  readonly epoch: number;
  /** Samples of the next epoch over all ranks, and this rank's batches in it. */
  readonly samples: number;
  readonly batches: number;
  /**
   * Number of this rank's batches in the whole epoch. It is more than `batches` if the run resumes in the middle of the
   * epoch.
   */
  readonly epochBatches: number;
  readonly batchSize: number;
  readonly globalBatchSize: number;
  readonly rank: number;
  readonly worldSize: number;
  readonly workers: number;
  readonly streams: number;
  readonly blockSamples: number;
  readonly shuffleUnit: 'sample' | 'shard' | 'chunk';
  /** How JPEGs are decoded and why. Null if images stay encoded. */
  readonly codec: CodecChoice | null;
  /**
   * Whether crops of JPEGs are decoded with crop indexes, and the reason. Also how many images of the last iteration
   * were decoded with a crop index, and how many from the start of their data, because they have no index or because
   * that is faster.
   */
  readonly cropIndex: {
    readonly used: boolean;
    readonly reason: string;
    readonly spliced: number;
    readonly others: number;
  };
  /** Memory of the batch slots. */
  readonly slotBytes: number;
  /** Memory for encoded samples: the expected amount, and the limit. Both are 0 if workers read the images from the shards. */
  readonly readBufferBytes: number;
  readonly readBufferLimitBytes: number;
}

/** Describes what a loader with this setup delivers from this position on. */
export function loaderInfo(
  setup: LoaderSetup,
  place: Place,
  counts: { readonly hasCropIndex: boolean; readonly samples: number; readonly spliced: number },
): LoaderInfo {
  const { order, output, memory } = setup;
  const { epoch, position } = place;
  const plan = order.plan(place);
  return {
    epoch,
    samples: plan.samples,
    batches: plan.batches,
    epochBatches: position === 0 ? plan.batches : order.plan({ epoch, position: 0 }).batches,
    batchSize: order.batchSize,
    globalBatchSize: order.globalBatch,
    rank: order.rank,
    worldSize: order.worldSize,
    workers: memory.slots.workers,
    streams: order.streams,
    blockSamples: order.blockSamples,
    shuffleUnit: order.unit,
    codec: output.codec,
    cropIndex: cropIndexOf(setup, counts),
    slotBytes: memory.slots.slots * memory.slots.slotBytes,
    readBufferBytes: memory.readBuffers.expectedBytes,
    readBufferLimitBytes: memory.readBuffers.limitBytes,
  };
}

function cropIndexOf(
  { cropIndex, output: { codec } }: LoaderSetup,
  { hasCropIndex, samples, spliced }: { hasCropIndex: boolean; samples: number; spliced: number },
): LoaderInfo['cropIndex'] {
  const counts = { spliced, others: Math.max(0, samples - spliced) };
  if (codec === null) return { used: false, reason: 'images stay encoded', ...counts };
  if (codec.name !== 'turbojpeg') return { used: false, reason: 'only TurboJPEG can use crop indexes', ...counts };
  if (cropIndex === 'unused') return { used: false, reason: 'the options switch crop indexes off', ...counts };
  if (cropIndex === 'slow') {
    return {
      used: false,
      reason: 'storage is slow, and crop indexes are additional data to fetch, so they are only used on request',
      ...counts,
    };
  }
  if (!hasCropIndex)
    return { used: false, reason: 'the first shard has no crop index (shardtool index --index crops)', ...counts };
  return { used: true, reason: 'the shards have crop indexes', ...counts };
}
