import { HashTable, mixedBits } from '@shardtool/base';

/** Keys that were added more than once. */
export interface RepeatedKeys {
  /** How many times a key came that had come before. */
  readonly count: number;
  /** The first such keys. */
  readonly examples: readonly string[];
}

const EXAMPLES = 10;

/**
 * Finds keys that come again among any number of keys, from a hash of 53 bits of each. It holds 16 bytes a key of one of
 * its `parts`: a dataset that is too large for memory is gone through once for each part.
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

  /** From now on only keys of this part count. */
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

/** Two walks of FNV-1a with different multipliers and MurmurHash3's last step, 53 bits of them; never 0. */
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
