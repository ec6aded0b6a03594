import { type LastBatch, type PlanOptions, planEpoch, type Unit } from '../batches.js';
import { bufferCount } from '../block-buffers.js';
import { blockAt, type EpochOrder, epochOrder, streamLength } from '../epoch-order.js';
import { fetchShare } from './fetch-share.js';
import { type ShuffleQuality, type ShuffleQualityOptions, shuffleQuality } from './shuffle-quality.js';

export interface PlanReportOptions extends Omit<PlanOptions, 'rank' | 'position'> {
  /** Encoded bytes of the selected samples of each shard. */
  readonly shardBytes: ArrayLike<number>;
  readonly prefetchBatches: number;
  /** Bytes of a decoded row in a batch slot: 224 * 224 * 3 for uint8. */
  readonly rowBytes: number;
  readonly classes?: ShuffleQualityOptions['classes'];
  /** Duration of a training step, in milliseconds. */
  readonly stepMs?: number | undefined;
  /** Rate at which a machine reads from the storage of the shards, in bytes per second. */
  readonly bandwidth?: number | undefined;
  /** Size of the cache on each machine, in bytes. Default: 0, which means no cache. */
  readonly cacheSize?: number | undefined;
  /** Number of machines, which have equal numbers of ranks. Default: 1. */
  readonly machines?: number | undefined;
}

/** What an epoch costs one rank, computed before anything is read. Sizes are in bytes. */
export interface PlanReport {
  /** Number of samples of an epoch over all ranks. With `repeats`, each repetition counts. */
  readonly samples: number;
  readonly shards: number;
  readonly worldSize: number;
  readonly globalBatch: number;
  readonly batchSize: number;
  /** Number of batches of each rank. */
  readonly batches: number;
  readonly lastBatch: LastBatch;
  /** Number of rows over all ranks that only pad batches. */
  readonly paddedRows: number;
  readonly droppedSamples: number;
  readonly order: {
    readonly unit: Unit;
    readonly streams: number;
    readonly blockSamples: number;
    /** streams * blockSamples. */
    readonly shuffleBufferSize: number;
  };
  /** Reads of one rank in one epoch, estimated from blocks spread over the epoch and the mean sample of each shard. */
  readonly reads: { readonly count: number; readonly meanBytes: number; readonly largestBytes: number };
  /**
   * Memory of one rank, at most. `buffers` is the number of block buffers. It is 0 if the whole dataset is kept in memory,
   * which takes `readBytes`. A loader of images alone on a local disk has no block buffers.
   */
  readonly memory: {
    readonly buffers: number;
    readonly bufferBytes: number;
    readonly readBytes: number;
    readonly slotBytes: number;
    readonly totalBytes: number;
  };
  /** Quality of the order, without the repetitions of the option `repeats`. */
  readonly shuffleQuality: ShuffleQuality;
  /** What is needed to keep up with a training step of `stepMs`, or null without `stepMs`. */
  readonly step: StepNeeds | null;
  /** Whether a machine with this bandwidth will wait for storage, or null without `stepMs` and `bandwidth`. */
  readonly storage: StorageNeeds | null;
}

/** Needs of one machine, in bytes and bytes per second. */
export interface StorageNeeds {
  readonly machines: number;
  readonly bandwidth: number;
  readonly cacheSize: number;
  /** Values of the first epoch. `later` is an epoch for which the cache already has some of the data. */
  readonly first: StorageEpoch;
  readonly later: StorageEpoch;
}

export interface StorageEpoch {
  readonly fetchedBytes: number;
  /** Rate at which no step waits. */
  readonly bytesPerSecond: number;
  /** Share of the epoch's time in which steps wait for storage. It is 0 if the bandwidth suffices. */
  readonly waitShare: number;
  readonly seconds: number;
}

/** Numbers per second over all ranks, unless noted otherwise. */
export interface StepNeeds {
  readonly stepMs: number;
  readonly images: number;
  readonly imagesPerRank: number;
  readonly bytes: number;
  /** Reads of blocks. It is 0 if the dataset is kept in memory. */
  readonly reads: number;
  /** Number of files that would be opened and read if each sample were a file. */
  readonly fileReads: number;
}

/**
 * Computes what an epoch costs and the shuffle quality. The function is pure and takes a fraction of a second for any
 * dataset.
 */
export function planReport(options: PlanReportOptions): PlanReport {
  const { counts, globalBatch, streams, blockSamples, worldSize = 1, prefetchBatches, stepMs, repeats = 1 } = options;
  const plan = planEpoch(options);
  const { batches, batchSize, lastBatch, unit, samples } = plan;
  const order = epochOrder({ ...options, unit });
  const bytes = sum(options.shardBytes);
  const meanSampleBytes = order.samples === 0 ? 0 : bytes / order.samples;
  const reads = unit === 'sample' ? wholeReads(options) : blockReads(order, options);
  const passes = order.samples === 0 ? 0 : samples / order.samples / repeats;
  // Repetitions of a sample are on different ranks. In all of a pass, a rank needs the same streams.
  const readers = Math.min(repeats, worldSize);
  const rankReads = (reads.count * readers) / worldSize;
  // With repetitions, a loader has buffers for all streams.
  const streamRanks = repeats === 1 ? worldSize : 1;

  const buffers =
    unit === 'sample' ? 0 : bufferCount({ streams, worldSize: streamRanks, blockSamples, batchSize, prefetchBatches });
  const bufferBytes = Math.ceil(blockSamples * meanSampleBytes);
  const readBytes = unit === 'sample' ? bytes : buffers * bufferBytes;
  const slotBytes = prefetchBatches * batchSize * options.rowBytes;
  const machineBytes = (bytes * passes * readers) / (options.machines ?? 1);
  return {
    samples,
    shards: counts.length,
    worldSize,
    globalBatch,
    batchSize,
    batches,
    lastBatch,
    paddedRows: paddedRows(lastBatch, samples, globalBatch, worldSize),
    droppedSamples: lastBatch === 'drop' ? samples % globalBatch : 0,
    order: { unit, streams, blockSamples, shuffleBufferSize: streams * blockSamples },
    reads: {
      count: unit === 'sample' ? reads.count : Math.ceil(rankReads * passes),
      meanBytes: Math.round(reads.count === 0 ? 0 : bytes / reads.count),
      largestBytes: Math.round(reads.largestBytes),
    },
    memory: { buffers, bufferBytes, readBytes, slotBytes, totalBytes: readBytes + slotBytes },
    shuffleQuality: shuffleQuality({ ...options, unit }),
    step:
      stepMs === undefined
        ? null
        : stepNeeds(stepMs, options, {
            bytes: bytes * readers,
            reads: unit === 'sample' ? 0 : rankReads * worldSize,
            rows: order.samples * repeats,
          }),
    storage: storageNeeds(options, { bytes, batches, machineBytes: unit === 'sample' ? bytes : machineBytes, unit }),
  };
}

function paddedRows(lastBatch: LastBatch, samples: number, globalBatch: number, worldSize: number): number {
  const rest = samples % globalBatch;
  if (lastBatch === 'drop' || rest === 0) return 0;
  return lastBatch === 'pad' ? globalBatch - rest : Math.max(0, worldSize - rest);
}

interface Reads {
  readonly count: number;
  readonly largestBytes: number;
}

/** If units are single samples, each rank keeps every shard in memory. */
function wholeReads({ shardBytes }: PlanReportOptions): Reads {
  const sizes = Array.from(shardBytes).filter((bytes) => bytes > 0);
  return { count: sizes.length, largestBytes: sizes.reduce((most, bytes) => Math.max(most, bytes), 0) };
}

const SAMPLED_BLOCKS = 4096;

/** Returns the reads of all ranks in one pass. If there are few blocks, all of them are counted. */
function blockReads(order: EpochOrder, { shardBytes, counts }: PlanReportOptions): Reads {
  const blocksOf = (s: number) => {
    const length = streamLength(order, s);
    return length === 0 ? 0 : blockAt(order, s, length - 1) + 1;
  };
  let blocks = 0;
  for (let s = 0; s < order.streams; s++) blocks += blocksOf(s);
  const everyNth = Math.max(1, Math.floor(blocks / SAMPLED_BLOCKS));
  let looked = 0;
  let reads = 0;
  let largestBytes = 0;
  let number = 0;
  for (let s = 0; s < order.streams; s++) {
    const ofStream = blocksOf(s);
    for (let block = (everyNth - (number % everyNth)) % everyNth; block < ofStream; block += everyNth) {
      const { pieces } = order.block(s, block);
      looked++;
      reads += pieces.length;
      for (const { shard, count } of pieces) {
        largestBytes = Math.max(largestBytes, (count * shardBytes[shard]!) / counts[shard]!);
      }
    }
    number += ofStream;
  }
  return { count: looked === 0 ? 0 : Math.round((reads / looked) * blocks), largestBytes };
}

function stepNeeds(
  stepMs: number,
  { globalBatch, worldSize = 1 }: PlanReportOptions,
  { bytes, reads, rows }: { readonly bytes: number; readonly reads: number; readonly rows: number },
): StepNeeds {
  const images = globalBatch / (stepMs / 1000);
  const share = rows === 0 ? 0 : images / rows;
  return {
    stepMs,
    images,
    imagesPerRank: images / worldSize,
    bytes: share * bytes,
    reads: share * reads,
    fileReads: images,
  };
}

/** Data that is kept in memory as a whole is fetched once by each machine. */
function storageNeeds(
  { stepMs, bandwidth, cacheSize = 0, machines = 1 }: PlanReportOptions,
  epoch: { readonly bytes: number; readonly batches: number; readonly machineBytes: number; readonly unit: Unit },
): StorageNeeds | null {
  if (stepMs === undefined || bandwidth === undefined) return null;
  const seconds = (epoch.batches * stepMs) / 1000;
  const epochOf = (fetchedBytes: number): StorageEpoch => {
    const takes = Math.max(seconds, fetchedBytes / bandwidth);
    return {
      fetchedBytes: Math.round(fetchedBytes),
      bytesPerSecond: seconds === 0 ? 0 : fetchedBytes / seconds,
      waitShare: takes === 0 ? 0 : (takes - seconds) / takes,
      seconds: takes,
    };
  };
  const later = epoch.unit === 'sample' || epoch.bytes === 0 ? 0 : fetchShare(cacheSize / epoch.bytes, machines);
  return {
    machines,
    bandwidth,
    cacheSize,
    first: epochOf(epoch.machineBytes),
    later: epochOf(later * epoch.machineBytes),
  };
}

function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}
