import { coresOfThisRank } from '@shardtool/base';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import { scratchBytesFor } from '../../decode/scratch-size.js';
import { spareImages } from '../../transform/mixes/mix-option.js';
import type { CheckedOptions } from '../options.js';
import type { PlannedStore } from '../read/load-shards.js';
import { noReadBuffers, planReadBuffers, type ReadBufferPlan } from '../read/read-buffers.js';
import { type MemoryPlan, planMemory } from '../ring/slots.js';
import type { LoaderOrder } from './order/order.js';
import type { LoaderOutput } from './output.js';

/** Sizes of the parts of memory. */
export interface LoaderMemory {
  /** The batch slots and the workers' scratch. */
  readonly slots: MemoryPlan;
  /** Encoded samples. */
  readonly readBuffers: ReadBufferPlan;
  /** Memory for samples that wait, or that are read individually. */
  readonly heldBytes: number;
}

type MemoryRequest = Pick<
  CheckedOptions,
  'prefetchBatches' | 'workers' | 'maxPixels' | 'readBufferBytes' | 'aspectBuckets' | 'holdBytes'
> & {
  /** Images stay in their shards, so they need no read buffers. */
  readonly staysInShards: boolean;
};

/** Divides the memory. Throws OptionError if it is not enough. */
export async function setUpMemory(
  dataset: StoredDataset,
  store: PlannedStore,
  order: LoaderOrder,
  output: LoaderOutput,
  options: MemoryRequest,
): Promise<LoaderMemory> {
  const { batchSize } = order;
  const { prefetchBatches } = options;
  const slots = planMemory({
    slots: prefetchBatches,
    rows: batchSize,
    rowBytes: output.rowBytes,
    workers: options.workers ?? coresOfThisRank(),
    scratchBytes:
      output.decoder === null ? 0 : Math.max(scratchBytesFor(output.decoder, options.maxPixels), mixBytes(output)),
  });
  const begin = order.isOver ? { epoch: order.begin.epoch + 1, position: 0 } : order.begin;
  const held = order.held(prefetchBatches);
  if (options.staysInShards) return { slots, readBuffers: noReadBuffers(held.buffers), heldBytes: 0 };
  const readBuffers = await planReadBuffers({
    dataset,
    store,
    unit: order.unit,
    selection: order.first,
    upcoming: order.upcoming(begin),
    samplesOf: order.samplesOf,
    all: order.all,
    held,
    limitBytes: options.readBufferBytes,
  });
  return { slots, readBuffers, heldBytes: heldBytesOf(dataset, order, options) };
}

/** Keeps the indexes of the shards in memory from which samples are read at the same time. */
export function keepIndexes(
  dataset: Pick<StoredDataset, 'size'> & {
    readonly shards: { readonly length: number };
    readonly files: Pick<StoredDataset['files'], 'keepIndexes'>;
  },
  {
    unit,
    streams,
    blockSamples,
    streamRanks,
    isScattered,
  }: Pick<LoaderOrder, 'unit' | 'streams' | 'blockSamples' | 'streamRanks' | 'isScattered'>,
  { aspectBuckets }: Pick<CheckedOptions, 'aspectBuckets'>,
): void {
  const shards = dataset.shards.length;
  const shardSamples = Math.max(1, dataset.size) / Math.max(1, shards);
  // Units of shards: a stream reads one after the other. A block may be in two, and finished ones of other streams stay for a while.
  const ofStream = unit === 'shard' ? Math.min(2, 1.25 + blockSamples / shardSamples) : 2;
  // Single samples can come from the streams of any rank.
  const ofBuckets = aspectBuckets === undefined ? 0 : streams;
  const indexes = Math.ceil((streams / streamRanks) * ofStream) + 16 + ofBuckets;
  // The next chunk can be in any shard, also if there are many ranks, each with few streams.
  const ofChunks = unit === 'chunk' ? Math.floor(KEPT_ROWS / shardSamples) : 0;
  // If the unit is a sample, every block has samples of many shards, and all fit the shuffle buffers.
  const most = unit === 'sample' ? shards : isScattered ? SCATTERED_INDEXES : Math.max(indexes, ofChunks);
  dataset.files.keepIndexes(Math.min(shards, most));
}

/** Bytes of the rows that a worker keeps aside while it mixes a batch. */
function mixBytes({ mixes, rowBytes }: LoaderOutput): number {
  return spareImages(mixes) * Math.max(...rowBytes.flatMap(({ image, extraFields }) => [image, ...extraFields]));
}

/** Number of rows of the indexes that are kept if chunks come from all shards. A row takes about 65 bytes. */
const KEPT_ROWS = 2_000_000;
/**
 * Each block of a scattered order has samples of many shards. With more shards than this, indexes would be read again
 * and again.
 */
const SCATTERED_INDEXES = 256;
/** Factor above the mean, for larger samples. It is address space, which takes no memory until it is written. */
const SPARE = 2;
const SPARE_BYTES = 64 * 2 ** 20;

/** Returns the bytes of samples that may wait, and of rows in progress that were read individually. */
function heldBytesOf(dataset: StoredDataset, order: LoaderOrder, options: MemoryRequest): number {
  if (options.aspectBuckets === undefined || order.unit === 'sample') return 0;
  const rows = options.prefetchBatches * order.batchSize;
  return options.holdBytes + Math.ceil(rows * SPARE * dataset.meanSampleBytes) + SPARE_BYTES;
}
