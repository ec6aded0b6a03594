import { philox } from '@shardtool/base';

/** A source of uniform numbers in [0, 1). */
export interface Random {
  next(): number;
}

/** Draws a number from a range. */
export function uniform([low, high]: readonly [number, number], random: Random): number {
  return low + (high - low) * random.next();
}

/** Draws an integer from 0 to n - 1. */
export function integerBelow(n: number, random: Random): number {
  return Math.floor(random.next() * n);
}

/** Draws one item of a list. */
export function drawOne<T>(list: readonly T[], random: Random): T {
  return list[integerBelow(list.length, random)]!;
}

/** Draws an order of a list. Takes one random number less than the list has items. */
export function shuffled<const List extends readonly unknown[]>(
  list: List,
  random: Random,
): { -readonly [Index in keyof List]: List[number] } {
  const order: List[number][] = [...list];
  for (let last = order.length - 1; last > 0; last--) {
    const other = integerBelow(last + 1, random);
    [order[last], order[other]] = [order[other]!, order[last]!];
  }
  return order as { [Index in keyof List]: List[number] };
}

/** Any number of random numbers for one key of two random numbers: the words of Philox4x32-10 with counters from 0. */
export class KeyedRandom implements Random {
  readonly #words = new Uint32Array(4);
  readonly #key: readonly [number, number];
  #at = 0;

  constructor(first: number, second: number) {
    this.#key = [(first * 2 ** 32) | 0, (second * 2 ** 32) | 0];
  }

  next(): number {
    const word = this.#at & 3;
    if (word === 0) philox((this.#at >>> 2) | 0, 0, 0, 0, ...this.#key, this.#words);
    this.#at++;
    return this.#words[word]! * 2 ** -32;
  }
}

/**
 * For each purpose, the first of a sample's random numbers that it uses. Purposes of a whole batch use the numbers of
 * its first sample.
 */
export const FIRST_NUMBER = {
  transform: 0,
  fieldsStep: 8192,
  pixelsStep: 10_240,
  mix: 12_288,
  batchStep: 14_336,
  rowSeeds: 16_124,
  /** The last 256 numbers: one per field. */
  captionSampling: 16_128,
} as const;

/** A sample has 2^14 random numbers. Its occurrence uses the upper 20 bits of the counter's first word. */
const OCCURRENCE_SHIFT = 12;
const MAX_QUADS = 2 ** OCCURRENCE_SHIFT;
/** An index is below 2^53, so the bits of the third word from this one on are free. */
const VIEW_SHIFT = 21;
/** Maximum number of views of a sample. With this number, the third word stays below 2^32 - 1. */
export const MAX_VIEWS = 500;
const MAX_OCCURRENCES = 2 ** (32 - OCCURRENCE_SHIFT);

/**
 * The random numbers of a sample. They depend only on (seed, epoch, sample index, occurrence), so every worker transforms a
 * sample in the same way. Random number i is word i mod 4, divided by 2^32, of Philox4x32-10 with the key
 * (seed mod 2^32, seed / 2^32) and the counter (i / 4 + occurrence * 2^12, index mod 2^32, 2^31 + view * 2^21 + index / 2^32,
 * epoch). The third word never collides with that of an epoch's order, whose streams are below 2^16 or 2^32 - 1. The occurrence
 * counts how often the sample appeared before in its epoch, from 0. It wraps around at 2^20. View k of a sample, counted from 0
 * over all groups, is k + 1; all other uses are 0.
 */
export class SampleRandom implements Random {
  readonly #words = new Uint32Array(4);
  readonly #key: readonly [number, number];
  #epoch = 0;
  #number = 0;
  #view = 0;
  #first = 0;
  #at = 0;

  /** `seed` is 0 to 2^53 - 1. */
  constructor(seed: number) {
    this.#key = [(seed % 2 ** 32) | 0, Math.floor(seed / 2 ** 32)];
  }

  /**
   * Starts the random numbers of a sample at number `from` (a multiple of 4; see {@link FIRST_NUMBER}). One object is reused
   * for all samples, so nothing is allocated. `view` is 0 to {@link MAX_VIEWS}: see above.
   */
  start(epoch: number, number: number, occurrence: number, from = 0, view = 0): this {
    this.#epoch = epoch;
    this.#number = number;
    this.#view = view;
    this.#first = (occurrence % MAX_OCCURRENCES) * MAX_QUADS;
    this.#at = from;
    return this;
  }

  next(): number {
    const word = this.#at & 3;
    if (word === 0) {
      philox(
        (this.#first + ((this.#at >>> 2) % MAX_QUADS)) | 0,
        this.#number | 0,
        (0x80000000 + this.#view * 2 ** VIEW_SHIFT + Math.floor(this.#number / 2 ** 32)) | 0,
        this.#epoch | 0,
        this.#key[0],
        this.#key[1],
        this.#words,
      );
    }
    this.#at++;
    return this.#words[word]! * 2 ** -32;
  }
}
