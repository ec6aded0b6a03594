import { lastAtMost, Recent } from '@shardtool/base';
import { byFirstBits, keyHash } from './key-hash.js';
import type { Keys } from './unknown-key.js';

/** Number of look-ups after which the hashes are sorted. Sorting takes as long as this number of searches. */
const SEARCHES_BEFORE_SORT = 32;
/** Number of shards whose keys are read at a time. */
const KEY_READS = 8;
/** Number of shards whose keys stay in memory, for comparisons with equal hashes. */
const KEPT_SHARDS = 64;

/** The keys of the shards of a dataset, which are read when they are needed. */
export interface ShardKeys {
  /** Index of the first sample of each shard; the last entry is the total number of samples. */
  readonly firstSample: ArrayLike<number>;
  keysOf(shard: number): Promise<readonly string[]>;
}

/**
 * Finds samples by key in a dataset of up to 2^32 samples with 4 bytes of memory per sample, and 8 after many look-ups: a
 * hash of each key, in the order of the samples. A key with the right hash is compared with the key in the index of its
 * shard. The first look-ups read the keys only up to the sample that they find.
 */
export class KeyHashes implements Keys {
  readonly #shards: ShardKeys;
  readonly #hashes: Uint32Array;
  readonly #keys: Recent<number, readonly string[]>;
  /** Number of shards whose hashes are known. */
  #known = 0;
  #reading: Promise<void> | null = null;
  #searches = 0;
  #sorted: SortedHashes | null = null;

  constructor(shards: ShardKeys) {
    this.#shards = shards;
    this.#hashes = new Uint32Array(shards.firstSample[this.#shardCount]!);
    this.#keys = new Recent(KEPT_SHARDS, (shard) => shards.keysOf(shard));
  }

  /** Returns the index of the first sample with this key, or -1. */
  async numberOf(key: string): Promise<number> {
    const hash = keyHash(key);
    let from = 0;
    for (;;) {
      const isWhole = this.#known === this.#shardCount;
      const to = this.#shards.firstSample[this.#known]!;
      for (const index of this.#withHash(hash, from, to)) if ((await this.#keyOf(index)) === key) return index;
      if (isWhole) return -1;
      from = to;
      this.#reading ??= this.#readNext().finally(() => {
        this.#reading = null;
      });
      await this.#reading;
    }
  }

  async first(count: number): Promise<string[]> {
    const keys: string[] = [];
    for (let shard = 0; shard < this.#shardCount && keys.length < count; shard++) {
      for (const key of (await this.#keys.get(shard)).slice(0, count - keys.length)) keys.push(key);
    }
    return keys;
  }

  get #shardCount(): number {
    return this.#shards.firstSample.length - 1;
  }

  /** Yields the samples from `from` to `to - 1` with this hash, in their order. */
  *#withHash(hash: number, from: number, to: number): Generator<number> {
    if (to === this.#hashes.length && ++this.#searches > SEARCHES_BEFORE_SORT) {
      this.#sorted ??= new SortedHashes(this.#hashes);
      for (const index of this.#sorted.find(hash)) if (index >= from) yield index;
      return;
    }
    const hashes = this.#hashes.subarray(0, to);
    for (let at = hashes.indexOf(hash, from); at >= 0; at = hashes.indexOf(hash, at + 1)) yield at;
  }

  async #keyOf(index: number): Promise<string> {
    const { firstSample } = this.#shards;
    const shard = lastAtMost(firstSample, index, this.#shardCount);
    return (await this.#keys.get(shard))[index - firstSample[shard]!]!;
  }

  async #readNext(): Promise<void> {
    const first = this.#known;
    const end = Math.min(first + KEY_READS, this.#shardCount);
    const read = await Promise.all(Array.from({ length: end - first }, (_, i) => this.#shards.keysOf(first + i)));
    read.forEach((keys, i) => {
      const base = this.#shards.firstSample[first + i]!;
      for (let row = 0; row < keys.length; row++) this.#hashes[base + row] = keyHash(keys[row]!);
    });
    this.#known = end;
  }
}

/** Samples in the order of the first bits of their hashes, with 4 bytes of memory per sample. */
class SortedHashes {
  readonly #hashes: Uint32Array;
  readonly #order: Uint32Array;
  /** Offset in the order of each value of the first bits. */
  readonly #starts: Uint32Array;
  readonly #shift: number;

  constructor(hashes: Uint32Array) {
    this.#hashes = hashes;
    const { shift, starts } = byFirstBits(hashes, 64);
    this.#shift = shift;
    this.#starts = starts;
    const ends = starts.slice();
    this.#order = new Uint32Array(hashes.length);
    for (let index = 0; index < hashes.length; index++) this.#order[ends[hashes[index]! >>> this.#shift]!++] = index;
  }

  /** Yields the samples with this hash, in their order. */
  *find(hash: number): Generator<number> {
    const first = hash >>> this.#shift;
    for (let at = this.#starts[first]!; at < this.#starts[first + 1]!; at++) {
      const index = this.#order[at]!;
      if (this.#hashes[index] === hash) yield index;
    }
  }
}
