import { HashTable, hashOfBytes, indexArray } from '@shardtool/base';
import { compareKey } from '../compare.js';
import { sortByBytes } from './byte-sort.js';

const FIRST_BYTES = 1 << 16;

/** Any number of distinct keys, numbered in order of arrival, in about 20 bytes each plus their own length. */
export class ShardKeys {
  /** All keys, one after the other. */
  bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  count = 0;
  #starts = new Float64Array(1024);
  /** Key numbers plus one. */
  readonly #numbers = new HashTable(Uint32Array, (entry) =>
    hashOfBytes(this.bytes, this.start(entry - 1), this.end(entry - 1)),
  );
  #rising = true;

  /** Offset of key `index` in `bytes`. */
  start(index: number): number {
    return this.#starts[index]!;
  }

  /** Its end. */
  end(index: number): number {
    return this.#starts[index + 1]!;
  }

  length(index: number): number {
    return this.#starts[index + 1]! - this.#starts[index]!;
  }

  has(key: Buffer): boolean {
    return this.#numbers.find(hashOfBytes(key, 0, key.length), (entry) => this.#isKey(entry - 1, key)) !== 0;
  }

  /** Adds a new key; its number is the `count` before the call. */
  add(key: Buffer): void {
    const start = this.#starts[this.count]!;
    this.#grow(start + key.length);
    if (this.#rising && this.count > 0) this.#rising = this.#compare(this.count - 1, key) < 0;
    this.bytes.set(key, start);
    this.count++;
    this.#starts[this.count] = start + key.length;
    this.#numbers.place(this.count, hashOfBytes(key, 0, key.length), () => false);
  }

  /** The numbers of the keys in the order of their bytes; a prefix sorts before longer keys. */
  sorted(): Uint32Array {
    const order = indexArray(this.count);
    return this.#rising ? order : sortByBytes(order, this.bytes, this.#starts);
  }

  /** The length of the common prefix of two keys, in bytes. */
  commonBytes(a: number, b: number): number {
    const length = Math.min(this.length(a), this.length(b));
    let same = 0;
    while (same < length && this.bytes[this.start(a) + same] === this.bytes[this.start(b) + same]) same++;
    return same;
  }

  #compare(index: number, key: Buffer): number {
    return compareKey(this.bytes, this.start(index), this.end(index), key);
  }

  #isKey(index: number, key: Buffer): boolean {
    return this.length(index) === key.length && this.#compare(index, key) === 0;
  }

  #grow(bytes: number): void {
    if (bytes > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow(2 * bytes);
      larger.set(this.bytes);
      this.bytes = larger;
    }
    if (this.count + 1 === this.#starts.length) {
      const larger = new Float64Array(2 * this.#starts.length);
      larger.set(this.#starts);
      this.#starts = larger;
    }
  }
}
