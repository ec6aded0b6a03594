import { createHash } from 'node:crypto';

/** Bytes of a key's md5 that are kept: 2^48 values. */
const HASH_BYTES = 6;

/** Remembers keys by a hash of each, in some 20 bytes a key, so that a stream of millions of samples can be checked. */
export class SeenKeys {
  /** Open addressing: hash + 1, or 0 for a free place. At most half of the places are taken. */
  #places = new Float64Array(1024);
  #count = 0;

  /** Whether this key may have been added before; false is certain. */
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

/** Where the hash stands, or where it would. */
function placeOf(places: Float64Array, hash: number): number {
  let place = hash % places.length;
  while (places[place] !== 0 && places[place] !== hash) place = (place + 1) % places.length;
  return place;
}
