type Places = Uint32Array | Float64Array;

const FIRST_PLACES = 1 << 12;

/**
 * A set of numbers that are found by the hash of the values they represent: open addressing with linear probing, at
 * most half full. The values are stored elsewhere, so the caller compares them.
 */
export class HashTable {
  /** Entries; 0 marks a free position. */
  #places: Places;
  #taken = 0;
  readonly #hashOf: (entry: number) => number;

  /**
   * `hashOf`: the hash of an entry (at least 32 bits), for when the table grows. `Kind`: `Uint32Array` for entries
   * below 2^32, or `Float64Array` for entries up to 2^53.
   */
  constructor(
    Kind: Uint32ArrayConstructor | Float64ArrayConstructor,
    hashOf: (entry: number) => number,
    expected = FIRST_PLACES / 2,
  ) {
    this.#hashOf = hashOf;
    this.#places = new Kind(2 ** Math.ceil(Math.log2(Math.max(2, expected * 2))));
  }

  /** Returns the entry with this hash for which `isIt` is true, or 0. */
  find(hash: number, isIt: (entry: number) => boolean): number {
    return this.#places[this.#placeOf(hash, isIt)]!;
  }

  /** Adds an entry, a number of at least 1, unless an equal one is found. Returns the entry that was found, or 0. */
  place(entry: number, hash: number, isIt: (entry: number) => boolean): number {
    const place = this.#placeOf(hash, isIt);
    const there = this.#places[place]!;
    if (there !== 0) return there;
    this.#places[place] = entry;
    if (++this.#taken * 2 > this.#places.length) this.#grow();
    return 0;
  }

  clear(): void {
    this.#places.fill(0);
    this.#taken = 0;
  }

  #placeOf(hash: number, isIt: (entry: number) => boolean): number {
    const mask = this.#places.length - 1;
    let place = lowBits(hash) & mask;
    for (let entry = this.#places[place]!; entry !== 0 && !isIt(entry); entry = this.#places[place]!) {
      place = (place + 1) & mask;
    }
    return place;
  }

  #grow(): void {
    const entries = this.#places.filter((entry) => entry !== 0);
    const larger = this.#places.length * 2;
    this.#places = this.#places instanceof Uint32Array ? new Uint32Array(larger) : new Float64Array(larger);
    for (const entry of entries) this.#places[this.#placeOf(this.#hashOf(entry), () => false)] = entry;
  }
}

/** The low 32 bits of a number up to 2^53, which may be negative. */
function lowBits(hash: number): number {
  return hash | 0;
}

/**
 * FNV-1a over bytes, followed by a mixing step, because a table uses the lowest bits. 32 bits. Splits depend on it, so
 * it must not change.
 */
export function hashOfBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return mixedBits(hash);
}

/** The last step of MurmurHash3: every output bit depends on all input bits. An unsigned 32-bit number. */
export function mixedBits(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
