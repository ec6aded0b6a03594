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
  /** Open addressing: hash, or 0 for a free place. At most half of the places are taken. */
  #places = new Float64Array(1 << 12);
  #taken = 0;
  #part = 0;
  #count = 0;
  readonly #examples: string[] = [];

  constructor(parts: number) {
    this.#parts = parts;
  }

  /** From now on only keys of this part count. */
  begin(part: number): void {
    this.#part = part;
    this.#taken = 0;
    this.#places.fill(0);
  }

  add(key: string): void {
    const hash = keyHash(key);
    if (hash % this.#parts !== this.#part) return;
    const place = placeOf(this.#places, hash);
    if (this.#places[place] === hash) {
      this.#count++;
      if (this.#examples.length < EXAMPLES) this.#examples.push(key);
      return;
    }
    this.#places[place] = hash;
    if (++this.#taken * 2 > this.#places.length) this.#grow();
  }

  get found(): RepeatedKeys {
    return { count: this.#count, examples: this.#examples };
  }

  #grow(): void {
    const larger = new Float64Array(this.#places.length * 2);
    for (const hash of this.#places) if (hash !== 0) larger[placeOf(larger, hash)] = hash;
    this.#places = larger;
  }
}

/** Where the hash stands, or where it would. */
function placeOf(places: Float64Array, hash: number): number {
  const mask = places.length - 1;
  let place = (hash % 2 ** 32) & mask;
  while (places[place] !== 0 && places[place] !== hash) place = (place + 1) & mask;
  return place;
}

/** Two walks of FNV-1a with different multipliers and MurmurHash3's last step, 53 bits of them; never 0. */
function keyHash(key: string): number {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let i = 0; i < key.length; i++) {
    const unit = key.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x5bd1e995);
    b ^= b >>> 15;
  }
  return (mixed(a) >>> 0) + (mixed(b) & 0x1fffff) * 2 ** 32 || 1;
}

function mixed(hash: number): number {
  let h = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
