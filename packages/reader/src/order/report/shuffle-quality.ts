import { lastAtMost } from '@shardtool/base';
import {
  type BlockSamples,
  type EpochOrder,
  epochOrder,
  type OrderOptions,
  positionOf,
  sampleAt,
} from '../epoch-order.js';
import { firstNumbers } from '../units.js';

/**
 * How well batches are mixed, as a multiple of the value of a perfect shuffle: 1 is perfect, more is worse. Null if
 * there is nothing to compare with, or too little data.
 */
export interface ShuffleQuality {
  /** Pairs of samples in a batch that are from one shard. */
  readonly shard: number | null;
  /** Pairs of samples in a batch that have one class. Null if classes are not given. */
  readonly class: number | null;
  /** Pairs of samples in a batch that are in one batch again in the next epoch. */
  readonly repeat: number | null;
  /** Number of batches that were examined. */
  readonly sampledBatches: number;
}

export interface ShuffleQualityOptions extends OrderOptions {
  readonly globalBatch: number;
  /** The class of each sample, by its number in the order, and the number of samples of each class. */
  readonly classes?: { of(number: number): number; readonly counts: ArrayLike<number> } | undefined;
}

const MOST_BATCHES = 50;
const LEAST_BATCHES = 4;
/** Maximum number of samples that are shuffled to compute it, which takes a fraction of a second. */
const WORK = 2 ** 22;
/**
 * The fractional part of the golden ratio. It spreads any number of points evenly, without resonance with the lengths of
 * blocks.
 */
const SPREAD = 0.6180339887498949;
/** A ratio of fewer pairs than this is chance. */
const FEW_PAIRS = 10;

/** Examines batches spread over the epoch: at most 50, and more of them if blocks are small. */
export function shuffleQuality(options: ShuffleQualityOptions): ShuffleQuality {
  const order = epochOrder(options);
  const next = epochOrder({ ...options, epoch: (options.epoch + 1) % 2 ** 32 });
  const { counts, classes } = options;
  const batchSize = Math.min(options.globalBatch, order.samples);
  const batches = batchSize === 0 ? 0 : Math.floor(order.samples / batchSize);
  const affordable = Math.max(LEAST_BATCHES, Math.floor(WORK / (batchSize * options.blockSamples)));
  const sampled = Math.min(batches, MOST_BATCHES, affordable);

  const first = firstNumbers(counts);
  const pairs = { shard: 0, class: 0, repeat: 0 };
  for (let i = 0; i < sampled; i++) {
    const batch = Math.floor(((i * SPREAD) % 1) * batches);
    const [now, then] = [withBlocksKept(order), withBlocksKept(next)];
    const numbers = Array.from({ length: batchSize }, (_, row) => sampleAt(now, batch * batchSize + row));
    pairs.shard += equalPairs(numbers.map((number) => lastAtMost(first, number)));
    pairs.repeat += equalPairs(numbers.map((number) => Math.floor(positionOf(then, number) / batchSize)));
    if (classes !== undefined) pairs.class += equalPairs(numbers.map((number) => classes.of(number)));
  }
  const looked = (sampled * batchSize * (batchSize - 1)) / 2;
  return {
    shard: ratio(pairs.shard, looked * chanceOfPair(counts, order.samples)),
    class: classes === undefined ? null : ratio(pairs.class, looked * chanceOfPair(classes.counts, order.samples)),
    repeat: ratio(pairs.repeat, (looked * (batchSize - 1)) / (order.samples - 1)),
    sampledBatches: sampled,
  };
}

/** Returns the same order for a few look-ups close together. Each block is shuffled only once. */
function withBlocksKept(order: EpochOrder): EpochOrder {
  const kept = new Map<number, BlockSamples>();
  return {
    ...order,
    block(s, block) {
      const name = block * order.streams + s;
      const found = kept.get(name) ?? order.block(s, block);
      kept.set(name, found);
      return found;
    },
  };
}

function equalPairs(values: readonly number[]): number {
  const seen = new Map<number, number>();
  let pairs = 0;
  for (const value of values) {
    const before = seen.get(value) ?? 0;
    pairs += before;
    seen.set(value, before + 1);
  }
  return pairs;
}

/** Returns the probability that two different samples are of one group. */
function chanceOfPair(counts: ArrayLike<number>, samples: number): number {
  let pairs = 0;
  for (let k = 0; k < counts.length; k++) pairs += counts[k]! * (counts[k]! - 1);
  return pairs / (samples * (samples - 1));
}

function ratio(found: number, expected: number): number | null {
  return found < FEW_PAIRS && !(expected >= FEW_PAIRS) ? null : found / expected;
}
