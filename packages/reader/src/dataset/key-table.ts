/** Keys of a whole dataset, one behind the other, with a table from hash to sample number. */
export class KeyTable {
  /** UTF-8 bytes of all keys. */
  #bytes: Buffer;
  #end = 0;
  /** Where each sample's key begins in the bytes; the next entry is where it ends. */
  readonly #start: Float64Array;
  /** Open addressing: sample number + 1, or 0 for a free place. At most half of the places are taken. */
  readonly #places: Float64Array;
  #samples = 0;

  /** For exactly `samples` keys, which come in the order of their sample numbers through {@link add}. */
  constructor(samples: number) {
    this.#bytes = Buffer.allocUnsafe(Math.max(1024, samples * 24));
    this.#start = new Float64Array(samples + 1);
    this.#places = new Float64Array(2 ** Math.ceil(Math.log2(Math.max(2, samples * 2))));
  }

  /** Adds the next samples' keys. Of two equal keys the first is found. */
  add(keys: readonly string[]): void {
    for (const key of keys) {
      const room = key.length * 3;
      if (this.#end + room > this.#bytes.length) this.#grow(room);
      const bytes = this.#bytes.write(key, this.#end, 'utf8');
      const place = this.#find(this.#bytes, this.#end, bytes);
      this.#end += bytes;
      const number = this.#samples++;
      this.#start[number + 1] = this.#end;
      if (this.#places[place] === 0) this.#places[place] = number + 1;
    }
  }

  /** The number of the sample with this key, or -1. */
  numberOf(key: string): number {
    const bytes = Buffer.from(key, 'utf8');
    return this.#places[this.#find(bytes, 0, bytes.length)]! - 1;
  }

  /** The place at which the key stands, or the free one at which it would. */
  #find(source: Buffer, at: number, bytes: number): number {
    const mask = this.#places.length - 1;
    let place = hash(source, at, bytes) & mask;
    for (;;) {
      const entry = this.#places[place]!;
      if (entry === 0) return place;
      const from = this.#start[entry - 1]!;
      const to = this.#start[entry]!;
      if (to - from === bytes && source.compare(this.#bytes, from, to, at, at + bytes) === 0) return place;
      place = (place + 1) & mask;
    }
  }

  #grow(room: number): void {
    const larger = Buffer.allocUnsafe(this.#bytes.length * 2 + room);
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
  }
}

/** FNV-1a over bytes, with the last mixing step of MurmurHash3, since the table takes the lowest bits. */
function hash(source: Buffer, at: number, bytes: number): number {
  let h = 0x811c9dc5;
  for (let i = at; i < at + bytes; i++) h = Math.imul(h ^ source[i]!, 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
