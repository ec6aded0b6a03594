import { OptionError, optionName, sentence } from '@shardtool/base';
import { MAX_STREAMS } from './words.js';

/**
 * Divisible by 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96 and 192. For each of these numbers of ranks, the order is
 * the same.
 */
export const STREAMS = 192;
/** A block is about one read of this size. */
const BLOCK_BYTES = 2 * 2 ** 20;
const LEAST_BLOCK_SAMPLES = 16;
const MOST_BLOCK_SAMPLES = 4096;

export interface OrderDefaultsOptions {
  readonly worldSize: number;
  /** Mean size of an encoded sample, in bytes. */
  readonly meanSampleBytes: number;
  readonly shuffle?: boolean | undefined;
  readonly streams?: number | undefined;
  readonly blockSamples?: number | undefined;
  /** streams * blockSamples, in samples; instead of `blockSamples`. */
  readonly shuffleBufferSize?: number | undefined;
}

/**
 * Returns the default number of streams and block size: lcm(192, worldSize) streams, and the power of two of samples
 * that is nearest to 2 MiB. Without shuffling there is one stream per rank, so that each rank reads its part in the
 * order on disk. Throws {@link OptionError} if the block size is given twice.
 */
export function orderDefaults(options: OrderDefaultsOptions): { streams: number; blockSamples: number } {
  const { worldSize, shuffle = true, shuffleBufferSize } = options;
  const streams = options.streams ?? (shuffle ? defaultStreams(worldSize) : worldSize);
  if (shuffleBufferSize === undefined) {
    return { streams, blockSamples: options.blockSamples ?? defaultBlockSamples(options.meanSampleBytes) };
  }
  const blockSamples = Math.max(1, Math.round(shuffleBufferSize / streams));
  if (options.blockSamples !== undefined && options.blockSamples !== blockSamples) {
    throw new OptionError(
      {},
      sentence`${optionName('shuffleBufferSize')} is ${shuffleBufferSize}, which makes blocks of ${blockSamples} samples in ${streams} streams, but ${optionName('blockSamples')} is ${options.blockSamples}: set only one of them.`,
    );
  }
  return { streams, blockSamples };
}

function defaultStreams(worldSize: number): number {
  const streams = (STREAMS / greatestCommonDivisor(STREAMS, worldSize)) * worldSize;
  return streams <= MAX_STREAMS ? streams : worldSize;
}

function defaultBlockSamples(meanSampleBytes: number): number {
  const samples = BLOCK_BYTES / Math.max(1, meanSampleBytes);
  const below = 2 ** Math.floor(Math.log2(samples));
  const nearest = samples - below < 2 * below - samples ? below : 2 * below;
  return Math.min(MOST_BLOCK_SAMPLES, Math.max(LEAST_BLOCK_SAMPLES, nearest));
}

export function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
