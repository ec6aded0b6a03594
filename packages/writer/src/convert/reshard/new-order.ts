import { didYouMean, OptionError, option, sentence, shuffle } from '@shardtool/base';
import type { ColumnValue } from '@shardtool/format';

/** The order of samples in new shards. */
export interface NewOrder {
  /** All samples are shuffled with this seed. Absent: they keep their order. */
  readonly seed: number | undefined;
  /** Samples are sorted by this column; those with equal values stay in the order before. Absent: they are not sorted. */
  readonly sortBy: string | undefined;
}

/** The most samples that can be ordered: a Uint32Array counts them. */
const MOST_SAMPLES = 2 ** 32;

/**
 * Returns the new position of every sample. The shuffle is that of `shuffle` in `base/src/philox.ts`, for one block of all
 * samples. Null sorts last. Memory: 8 bytes per sample, and what {@link SortValues} holds.
 */
export function newPositions(samples: number, { seed }: NewOrder, values: SortValues | null): Uint32Array {
  if (samples > MOST_SAMPLES) throw new OptionError({}, 'More than 4 billion samples cannot be ordered at once.');
  const order = new Uint32Array(samples);
  for (let i = 0; i < samples; i++) order[i] = i;
  if (seed !== undefined) shuffle(order, samples, seed, 0, 0, 0);
  if (values !== null) {
    const ranks = values.ranks();
    order.sort((a, b) => compare(ranks[a]!, ranks[b]!));
  }
  const positions = new Uint32Array(samples);
  for (let i = 0; i < samples; i++) positions[order[i]!] = i;
  return positions;
}

/** Sorts infinite values too, whose difference is not a number, and {@link NO_VALUE} last. */
function compare(a: number, b: number): number {
  if (a < b) return -1;
  if (a > b) return 1;
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

const NO_VALUE = Number.NaN;

/**
 * Values of the column that samples are sorted by, in the order of the dataset. Memory: 8 bytes per sample, and the
 * distinct values of a column of text.
 */
export class SortValues {
  readonly #column: string;
  #values = new Float64Array(1024);
  #samples = 0;
  readonly #texts = new Map<string, number>();
  #type: 'string' | 'number' | 'boolean' | null = null;

  constructor(column: string) {
    this.#column = column;
  }

  /** Throws {@link OptionError} if the values are of another type than those before. */
  add(values: ArrayLike<ColumnValue>): void {
    if (this.#samples + values.length > this.#values.length) {
      const grown = new Float64Array(Math.max(this.#values.length * 2, this.#samples + values.length));
      grown.set(this.#values);
      this.#values = grown;
    }
    for (let i = 0; i < values.length; i++) this.#values[this.#samples++] = this.#valueOf(values[i] ?? null);
  }

  #valueOf(value: ColumnValue): number {
    if (value === null || Number.isNaN(value)) return NO_VALUE;
    const type = typeof value as 'string' | 'number' | 'boolean';
    this.#type ??= type;
    if (type !== this.#type) {
      const message = `The column "${this.#column}" has text for some samples and numbers for others, so samples cannot be sorted by it.`;
      throw new OptionError({}, message);
    }
    if (typeof value !== 'string') return Number(value);
    const known = this.#texts.get(value);
    if (known !== undefined) return known;
    this.#texts.set(value, this.#texts.size);
    return this.#texts.size - 1;
  }

  /** A number per sample that has the order of the values. Texts are in the order of their UTF-16 code units. */
  ranks(): Float64Array {
    const ranks = this.#values.subarray(0, this.#samples);
    if (this.#texts.size === 0) return ranks;
    const sorted = [...this.#texts.keys()].sort();
    const rankOf = new Float64Array(sorted.length);
    for (const [rank, text] of sorted.entries()) rankOf[this.#texts.get(text)!] = rank;
    return ranks.map((value) => (Number.isNaN(value) ? NO_VALUE : rankOf[value]!));
  }
}

/** Throws {@link OptionError} for a column that the dataset does not have. */
export function checkSortColumn(column: string, labels: readonly string[]): void {
  const names = [...INDEX_COLUMNS, ...labels];
  if (names.includes(column)) return;
  const message = sentence`The dataset has no column "${column}" to sort by (${option('sortBy')})${didYouMean(column, names)}; there are ${names.join(', ')}.`;
  throw new OptionError({}, message);
}

/** Columns of every index that samples can be sorted by. `class` is the name of the class. */
export const INDEX_COLUMNS = ['key', 'class', 'bytes', 'width', 'height', 'source'] as const;
