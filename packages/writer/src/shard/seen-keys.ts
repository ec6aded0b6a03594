import { createHash } from 'node:crypto';

/** Number of bytes of a key's md5 that are kept: 2^48 values. */
const HASH_BYTES = 6;

/**
 * Remembers keys by a hash of each, in about 20 bytes per key, so that a stream of millions of samples can be checked.
 */
export class SeenKeys {
  /** Hash table with open addressing: hash + 1, or 0 for a free entry. At most half of the entries are used. */
  #places = new Float64Array(1024);
  #count = 0;

  /** Adds a key. Returns true if it may have been added before; false is certain. */
  add(key: string): boolean {
    const hash = createHash('md5').update(key).digest().readUIntBE(0, HASH_BYTES) + 1;
    const place = placeOf(this.#places, hash);
    if (this.#places[place] === hash) return true;
    this.#places[place] = hash;
    if (++this.#count * 2 > this.#places.length) this.#grow();
    return false;
  }

  #grow(): void {
    const larger = new Float64Array(this.#places.length * 2);
    for (const hash of this.#places) if (hash !== 0) larger[placeOf(larger, hash)] = hash;
    this.#places = larger;
  }
}

/** Position of the hash in the table, or the position where it belongs. */
function placeOf(places: Float64Array, hash: number): number {
  let place = hash % places.length;
  while (places[place] !== 0 && places[place] !== hash) place = (place + 1) % places.length;
  return place;
}
