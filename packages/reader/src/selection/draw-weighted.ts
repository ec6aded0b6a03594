import { indexArray, shuffle } from '@shardtool/base';
import { type Randomness, WEIGHTED_STREAM, word } from '../order/words.js';

/**
 * Number of occurrences of samples by their weights: `whole` times in every pass, and once more in a pass that draws
 * the sample.
 */
export interface WeightedTimes {
  readonly whole: Uint32Array;
  /** Samples that may be drawn once more, and their probabilities, whose sum is about `extra`. */
  readonly drawn: Uint32Array;
  readonly probability: Float64Array;
  /** Number of samples that are drawn in each pass. */
  readonly extra: number;
}

/** If a sample's share differs by less than this from a whole number, the sample occurs exactly that often. */
const TOLERANCE = 1e-9;
/** Numbers within the stream of the draws: the order in which samples are visited, and the random start. */
const [SHUFFLE_BLOCK, START_BLOCK] = [0, 1];

/**
 * Divides a pass of `samples` samples by weights, of which at least one is greater than 0. A sample occurs `weight *
 * samples / sum` times, rounded up or down.
 */
export function weightedTimes(weights: Float64Array, samples: number): WeightedTimes {
  let sum = 0;
  for (const weight of weights) sum += weight;
  const whole = new Uint32Array(weights.length);
  const shareOf = (i: number) => (weights[i]! / sum) * samples;
  let left = samples;
  let count = 0;
  for (let i = 0; i < weights.length; i++) {
    const share = shareOf(i);
    const near = Math.round(share);
    whole[i] = Math.abs(share - near) <= TOLERANCE * Math.max(1, near) ? near : Math.floor(share);
    left -= whole[i]!;
    if (isDrawn(share, whole[i]!)) count++;
  }
  const drawn = new Uint32Array(count);
  const probability = new Float64Array(count);
  for (let i = 0, at = 0; i < weights.length; i++) {
    const share = shareOf(i);
    if (!isDrawn(share, whole[i]!)) continue;
    drawn[at] = i;
    probability[at++] = share - whole[i]!;
  }
  return { whole, drawn, probability, extra: Math.max(0, left) };
}

/** Whether a sample may be drawn once more than `whole` times. */
function isDrawn(share: number, whole: number): boolean {
  return share - whole > TOLERANCE * Math.max(1, Math.round(share));
}

/**
 * How often each sample occurs in one pass. The samples with a probability are put into a random order and on a line,
 * on which each takes a length equal to its probability. The samples at whole-number distances from a random start
 * occur once more. So a pass has exactly the requested number of samples, and each sample occurs with its own
 * probability.
 */
export function drawWeighted({ whole, drawn, probability, extra }: WeightedTimes, randomness: Randomness): Uint32Array {
  const times = whole.slice();
  if (drawn.length === 0) return times;
  const order = indexArray(drawn.length);
  shuffle(order, order.length, randomness.seed, randomness.epoch, WEIGHTED_STREAM, SHUFFLE_BLOCK);
  let sum = 0;
  for (const part of probability) sum += part;
  // 20 bits, so that the sum with `extra` is exact.
  const start = (word(randomness, WEIGHTED_STREAM, START_BLOCK, 0) >>> 12) * 2 ** -20;
  let line = 0;
  for (let i = 0; i < order.length; i++) {
    const before = Math.floor(start + line);
    line = i === order.length - 1 ? extra : Math.min(extra, line + (probability[order[i]!]! / sum) * extra);
    times[drawn[order[i]!]!]! += Math.floor(start + line) - before;
  }
  return times;
}
