import { HashTable, mixedBits } from '@shardtool/base';

/** Keys that were added more than once. */
export interface RepeatedKeys {
  /** Number of keys that had occurred before. */
  readonly count: number;
  /** The first such keys. */
  readonly examples: readonly string[];
}

const EXAMPLES = 10;

/**
 * Finds repeated keys among any number of keys by a hash of 53 bits. It uses 16 bytes per key of one of its `parts`. If
 * a dataset is too large for memory, its keys are read once for each part.
 */
export class KeyRepetitions {
  readonly #parts: number;
  readonly #hashes = new HashTable(Float64Array, (hash) => hash);
  #part = 0;
  #count = 0;
  readonly #examples: string[] = [];

  constructor(parts: number) {
    this.#parts = parts;
  }

  /** Counts only keys of this part from now on. */
  begin(part: number): void {
    this.#part = part;
    this.#hashes.clear();
  }

  add(key: string): void {
    const hash = wideHash(key);
    if (hash % this.#parts !== this.#part) return;
    if (this.#hashes.place(hash, hash, (entry) => entry === hash) === 0) return;
    this.#count++;
    if (this.#examples.length < EXAMPLES) this.#examples.push(key);
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
