import { OptionError, philox } from '@shardtool/base';
import { type Randomness, WEIGHTS_STREAM } from '../order/words.js';
import { type ClassChoice, classNumber, isNumberOfClass } from './classes.js';

/** A sample as a weight function receives it. */
export interface WeighedSample {
  /** Index in the dataset, in the order on disk. */
  readonly number: number;
  readonly key: string;
  /** Class number; -1 if the sample has no class. */
  readonly cls: number;
}

/**
 * Relative frequency of samples: by class (1 if not given), as an array with a number for each sample, or as a
 * function. An epoch has as many samples as have a weight above 0, or `samplesPerEpoch`. The keys of a plain object are
 * class names. In a Map or a list of pairs, a string is a class name and a number a class number.
 */
export type Weights = ClassWeights | ArrayLike<number> | WeightFunction;

type ClassWeights =
  | Readonly<Record<string, number>>
  | ReadonlyMap<ClassChoice, number>
  | readonly (readonly [ClassChoice, number])[];

type WeightFunction = (sample: WeighedSample) => number;

/**
 * Returns a function that gives each sample its weight. Throws {@link OptionError} for an invalid weight, an unknown
 * class, and an array with another length than the number of `samples`.
 */
export function weigher(
  weights: Weights,
  classNames: readonly string[],
  samples: number,
): (sample: WeighedSample) => number {
  if (typeof weights === 'function') {
    return (sample) => checkWeight(weights(sample), `sample "${sample.key}"`);
  }
  if (isArrayOfNumbers(weights)) {
    checkLength(weights.length, samples);
    return ({ number }) => checkWeight(weights[number]!, `sample number ${number}`);
  }
  const byClass = new Map<number, number>();
  for (const [wanted, weight] of pairsOf(weights, classNames)) {
    const cls = classNumber(wanted, classNames);
    const name = JSON.stringify(wanted);
    if (byClass.has(cls)) throw new OptionError({}, `The weight of class ${name} is given twice: give it once.`);
    byClass.set(cls, checkWeight(weight, `class ${name}`));
  }
  return ({ cls }) => byClass.get(cls) ?? 1;
}

function isArrayOfNumbers(weights: Exclude<Weights, WeightFunction>): weights is ArrayLike<number> {
  return ArrayBuffer.isView(weights) || (Array.isArray(weights) && typeof weights[0] === 'number');
}

function checkLength(length: number, samples: number): void {
  if (length === samples) return;
  throw new OptionError(
    {},
    `weights has ${length} numbers, but the dataset has ${samples} samples: give one number per sample, in the order on disk.`,
  );
}

function pairsOf(weights: ClassWeights, classNames: readonly string[]): Iterable<readonly [ClassChoice, number]> {
  if (weights instanceof Map || Array.isArray(weights)) return weights;
  const pairs = Object.entries(weights as Readonly<Record<string, number>>);
  for (const [name] of pairs) checkUnambiguous(name, classNames);
  return pairs;
}

/** `{ 10: 5 }` and `{ '10': 5 }` are the same object. */
function checkUnambiguous(name: string, classNames: readonly string[]): void {
  const named = classNames.indexOf(name);
  if (named < 0 || !isNumberOfClass(name, classNames) || Number(name) === named) return;
  throw new OptionError(
    {},
    `The weight of ${JSON.stringify(name)} is ambiguous: it could mean the class of this name (number ${named}) or class number ` +
      `${name} (${JSON.stringify(classNames[Number(name)])}): give pairs, [['${name}', weight]] or [[${name}, weight]].`,
  );
}

function checkWeight(weight: number, of: string): number {
  if (Number.isFinite(weight) && weight >= 0) return weight;
  throw new OptionError({}, `The weight of ${of} is ${weight}: it must be a number of 0 or more.`);
}

const WORDS = new Uint32Array(4);

/**
 * Number of occurrences of each of consecutive samples in one epoch of a run that an earlier version started: floor(w)
 * times, and once more if u < frac(w). u is word i mod 4, over 2^32, of Philox4x32-10 for the counter (i / 4, number /
 * 2^32, WEIGHTS_STREAM, epoch) under the key `seed`, where i is the sample's number in the dataset mod 2^32. So a
 * sample's draw depends only on (seed, epoch, number).
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
