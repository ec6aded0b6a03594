import { OptionError, philox } from '@shardtool/format';
import { type Randomness, WEIGHTS_STREAM } from '../order/words.js';
import { classNumber } from './classes.js';

/** A sample as a weight function sees it. */
export interface WeighedSample {
  readonly key: string;
  /** -1 where there is none. */
  readonly cls: number;
}

/** How often a sample comes in an epoch: by class (name or number; 1 where not named), or by a function. */
export type Weights = Readonly<Record<string, number>> | ((sample: WeighedSample) => number);

/** A function that gives each sample its weight. Throws {@link OptionError} for what is no weight, or no class. */
export function weigher(weights: Weights, classNames: readonly string[]): (sample: WeighedSample) => number {
  if (typeof weights === 'function') {
    return (sample) => checkWeight(weights(sample), `sample "${sample.key}"`);
  }
  const byClass = new Map<number, number>();
  for (const [name, weight] of Object.entries(weights)) {
    byClass.set(classNumber(name, classNames), checkWeight(weight, `class "${name}"`));
  }
  return ({ cls }) => byClass.get(cls) ?? 1;
}

function checkWeight(weight: number, of: string): number {
  if (Number.isFinite(weight) && weight >= 0) return weight;
  throw new OptionError({}, `The weight of ${of} is ${weight}: it must be a number from 0 on.`);
}

const WORDS = new Uint32Array(4);

/**
 * How often each of consecutive samples comes in one epoch: floor(w) times, and once more where u < frac(w). u is word i
 * mod 4, over 2^32, of Philox4x32-10 for the counter (i / 4, number / 2^32, WEIGHTS_STREAM, epoch) under the key `seed`,
 * where i is the sample's number in the dataset mod 2^32. So a sample's draw depends on (seed, epoch, number) alone.
 */
export function drawTimes(
  weights: Float64Array,
  numberOf: (i: number) => number,
  { seed, epoch }: Randomness,
): Uint32Array {
  const times = new Uint32Array(weights.length);
  const [k0, k1] = [seed | 0, Math.floor(seed / 2 ** 32)];
  let quad = -1;
  for (let i = 0; i < weights.length; i++) {
    const whole = Math.floor(weights[i]!);
    const rest = weights[i]! - whole;
    times[i] = whole;
    if (rest === 0) continue;
    const number = numberOf(i);
    if (Math.floor(number / 4) !== quad) {
      quad = Math.floor(number / 4);
      philox(quad % 2 ** 30, Math.floor(quad / 2 ** 30), WEIGHTS_STREAM, epoch, k0, k1, WORDS);
    }
    if (WORDS[number % 4]! * 2 ** -32 < rest) times[i]!++;
  }
  return times;
}
