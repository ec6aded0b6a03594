import { sortByBytes } from './byte-sort.js';
import { compareKey } from './compare.js';

const FIRST_BYTES = 1 << 16;
const FIRST_SLOTS = 1 << 12;

/** Any number of distinct keys, numbered as they come, in about 20 bytes each besides their own. */
export class KeyTable {
  /** All keys, one after the other. */
  bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  count = 0;
  #starts = new Float64Array(1024);
  /** Numbers of keys plus one, by hash, with linear probing; 0 is a free slot. At most half of them are taken. */
  #slots = new Uint32Array(FIRST_SLOTS);
  #rising = true;

  /** Where key `index` begins in `bytes`. */
  start(index: number): number {
    return this.#starts[index]!;
  }

  /** Where it ends. */
  end(index: number): number {
    return this.#starts[index + 1]!;
  }

  length(index: number): number {
    return this.#starts[index + 1]! - this.#starts[index]!;
  }

  has(key: Buffer): boolean {
    return this.#slots[this.#slotOf(key)] !== 0;
  }

  /** Takes a key that is not there yet; its number is `count` before that. */
  add(key: Buffer): void {
    const start = this.#starts[this.count]!;
    this.#grow(start + key.length);
    if (this.#rising && this.count > 0) this.#rising = this.#compare(this.count - 1, key) < 0;
    this.#slots[this.#slotOf(key)] = this.count + 1;
    this.bytes.set(key, start);
    this.count++;
    this.#starts[this.count] = start + key.length;
  }

  /** The numbers of the keys in the order of their bytes; a key comes before those that go on after it. */
  sorted(): Uint32Array {
    const order = Uint32Array.from({ length: this.count }, (_, i) => i);
    return this.#rising ? order : sortByBytes(order, this.bytes, this.#starts);
  }

  /** How many bytes two keys have in common at their start. */
  commonBytes(a: number, b: number): number {
    const length = Math.min(this.length(a), this.length(b));
    let same = 0;
    while (same < length && this.bytes[this.start(a) + same] === this.bytes[this.start(b) + same]) same++;
    return same;
  }

  #compare(index: number, key: Buffer): number {
    return compareKey(this.bytes, this.start(index), this.end(index), key);
  }

  /** The slot that has this key, or the free one where it would go. */
  #slotOf(key: Buffer): number {
    const mask = this.#slots.length - 1;
    let slot = hash(key, 0, key.length) & mask;
    for (let index = this.#slots[slot]!; index !== 0; index = this.#slots[slot]!) {
      if (this.length(index - 1) === key.length && this.#compare(index - 1, key) === 0) break;
      slot = (slot + 1) & mask;
    }
    return slot;
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
    if (2 * (this.count + 1) > this.#slots.length) this.#rehash(2 * this.#slots.length);
  }

  #rehash(slots: number): void {
    this.#slots = new Uint32Array(slots);
    for (let index = 0; index < this.count; index++) {
      let slot = hash(this.bytes, this.start(index), this.end(index)) & (slots - 1);
      while (this.#slots[slot] !== 0) slot = (slot + 1) & (slots - 1);
      this.#slots[slot] = index + 1;
    }
  }
}

/** FNV-1a with its bits mixed once more, since the low ones choose the slot (Murmur3's finalizer). */
function hash(bytes: Uint8Array, start: number, end: number): number {
  let value = 0x811c9dc5;
  for (let i = start; i < end; i++) value = Math.imul(value ^ bytes[i]!, 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
