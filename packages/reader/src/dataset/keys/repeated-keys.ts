import { mixedBits } from '@shardtool/base';

/** Keys that were added more than once. */
export interface RepeatedKeys {
  /** Number of keys that had occurred before. */
  readonly count: number;
  /** The first such keys. */
  readonly examples: readonly string[];
}

const EXAMPLES = 10;

/** Number of different hashes that examples are searched for. */
const EXAMPLE_HASHES = 10_000;

/**
 * Finds repeated keys among any number of keys by sorting their hashes of 53 bits, with 8 bytes per key of one of its `parts`. The
 * keys are read once for each part, and once more for examples, if there are repeated keys.
 */
export class KeyRepetitions {
  readonly #parts: number;
  #hashes: Float64Array;
  #part = 0;
  #size = 0;
  #count = 0;
  readonly #repeated = new Set<number>();
  readonly #seen = new Set<number>();
  readonly #examples: string[] = [];

  constructor(keys: number, parts: number) {
    this.#parts = parts;
    // Parts are almost equal. The list grows if one is larger.
    this.#hashes = new Float64Array(Math.ceil((keys / parts) * (parts > 1 ? 1.01 : 1)));
  }

  /** Takes only keys of this part from now on. */
  begin(part: number): void {
    this.#part = part;
    this.#size = 0;
  }

  add(key: string): void {
    const hash = wideHash(key);
    if (this.#parts > 1 && hash % this.#parts !== this.#part) return;
    if (this.#size === this.#hashes.length) {
      const larger = new Float64Array(Math.ceil(this.#size * 1.25) + 1);
      larger.set(this.#hashes);
      this.#hashes = larger;
    }
    this.#hashes[this.#size++] = hash;
  }

  /** Counts the keys of the part that are repeated. */
  end(): void {
    const sorted = this.#hashes.subarray(0, this.#size).sort();
    for (let i = 1; i < sorted.length; i++) {
      if (sorted[i] !== sorted[i - 1]) continue;
      this.#count++;
      if (this.#repeated.size < EXAMPLE_HASHES) this.#repeated.add(sorted[i]!);
    }
  }

  /** True until the wanted number of examples is reached. */
  get lacksExamples(): boolean {
    return this.#examples.length < Math.min(EXAMPLES, this.#count);
  }

  /** Takes a key, in the same order, as an example if it is repeated. */
  addExample(key: string): void {
    const hash = wideHash(key);
    if (!this.#repeated.has(hash)) return;
    if (this.#seen.has(hash)) {
      if (this.#examples.length < EXAMPLES) this.#examples.push(key);
    } else this.#seen.add(hash);
  }

  get found(): RepeatedKeys {
    return { count: this.#count, examples: this.#examples };
  }
}

/**
 * Two FNV-1a hashes with different multipliers, the finalizer of MurmurHash3, and 53 bits of the result. It is never 0.
 */
function wideHash(key: string): number {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let i = 0; i < key.length; i++) {
    const unit = key.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x5bd1e995);
    b ^= b >>> 15;
  }
  return mixedBits(a) + (mixedBits(b) & 0x1fffff) * 2 ** 32 || 1;
}
