import { HashTable, hashOfBytes } from '@shardtool/base';
import type { Keys } from './unknown-key.js';

/** Keys of a whole dataset, one after the other, with a table from hash to sample index. */
export class KeyTable implements Keys {
  /** UTF-8 bytes of all keys. */
  #bytes: Buffer;
  #end = 0;
  /** Offset of each sample's key in the bytes. The next entry is the end of the key. */
  readonly #start: Float64Array;
  /** Sample indices plus one. */
  readonly #numbers: HashTable;
  #samples = 0;

  /** Creates a table for exactly `samples` keys. They have to be added in the order of the samples. */
  constructor(samples: number) {
    this.#bytes = Buffer.allocUnsafe(Math.max(1024, samples * 24));
    this.#start = new Float64Array(samples + 1);
    const hashOf = (entry: number) => hashOfBytes(this.#bytes, this.#start[entry - 1]!, this.#start[entry]!);
    this.#numbers = new HashTable(Float64Array, hashOf, samples);
  }

  /** Adds the keys of the next samples. Of two equal keys, the first is found. */
  add(keys: readonly string[]): void {
    for (const key of keys) {
      const room = key.length * 3;
      if (this.#end + room > this.#bytes.length) this.#grow(room);
      const bytes = this.#bytes.write(key, this.#end, 'utf8');
      const begin = this.#end;
      this.#end += bytes;
      this.#start[++this.#samples] = this.#end;
      const hash = hashOfBytes(this.#bytes, begin, this.#end);
      this.#numbers.place(this.#samples, hash, (entry) => this.#isKey(entry, this.#bytes, begin, bytes));
    }
  }

  /** Returns the index of the sample with this key, or -1. */
  numberOf(key: string): number {
    const bytes = Buffer.from(key, 'utf8');
    const hash = hashOfBytes(bytes, 0, bytes.length);
    return this.#numbers.find(hash, (entry) => this.#isKey(entry, bytes, 0, bytes.length)) - 1;
  }

  first(count: number): string[] {
    const text = (i: number) => this.#bytes.toString('utf8', this.#start[i]!, this.#start[i + 1]!);
    return Array.from({ length: Math.min(count, this.#samples) }, (_, i) => text(i));
  }

  #isKey(entry: number, source: Buffer, at: number, bytes: number): boolean {
    const from = this.#start[entry - 1]!;
    const to = this.#start[entry]!;
    return to - from === bytes && source.compare(this.#bytes, from, to, at, at + bytes) === 0;
  }

  #grow(room: number): void {
    const larger = Buffer.allocUnsafe(this.#bytes.length * 2 + room);
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
  }
}
