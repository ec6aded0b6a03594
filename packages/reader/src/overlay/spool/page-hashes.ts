import { totalOf } from '@shardtool/base';
import { byFirstBits, keyHash } from '../../dataset/keys/key-hash.js';

/** Shards with the column that labels refer to. */
export interface IdentifiedShards {
  /** Number of samples of each shard. */
  readonly counts: readonly number[];
  /** Yields the keys or paths of all samples, one shard after the other. */
  idsOfShards(by: 'key' | 'path'): AsyncIterable<readonly string[]>;
}

/**
 * Finds the pages that may have a key or path by the hashes of all of them: sorted by their first bits, with 6 bytes of
 * memory per sample, and 10 while they are sorted.
 */
export class PageHashes {
  readonly #shift: number;
  /** Offset of the first hash with each value of the first bits. */
  readonly #starts: Uint32Array;
  readonly #hashes: Uint32Array;
  readonly #pages: Uint16Array;

  private constructor(hashes: Uint32Array, pageOf: (sample: number) => number) {
    const { shift, starts } = byFirstBits(hashes, 4);
    this.#shift = shift;
    this.#starts = starts;
    const ends = starts.slice();
    this.#hashes = new Uint32Array(hashes.length);
    this.#pages = new Uint16Array(hashes.length);
    for (let sample = 0; sample < hashes.length; sample++) {
      const hash = hashes[sample]!;
      const at = ends[hash >>> this.#shift]!++;
      this.#hashes[at] = hash;
      this.#pages[at] = pageOf(sample);
    }
  }

  static async read(
    { counts, idsOfShards }: IdentifiedShards,
    by: 'key' | 'path',
    pageOfShard: Uint16Array,
  ): Promise<PageHashes> {
    const hashes = new Uint32Array(totalOf(counts, (count) => count));
    let at = 0;
    for await (const ids of idsOfShards(by)) for (const id of ids) hashes[at++] = keyHash(id);
    let shard = 0;
    let end = counts[0] ?? 0;
    // Samples are asked for in their order.
    return new PageHashes(hashes, (sample) => {
      while (sample >= end) end += counts[++shard]!;
      return pageOfShard[shard]!;
    });
  }

  /** Calls `add` with each page that may have a sample with this key or path, in ascending order. */
  eachPage(id: string, add: (page: number) => void): void {
    const hash = keyHash(id);
    const first = hash >>> this.#shift;
    const to = this.#starts[first + 1]!;
    let last = -1;
    for (let at = this.#starts[first]!; at < to; at++) {
      if (this.#hashes[at] !== hash || this.#pages[at] === last) continue;
      last = this.#pages[at]!;
      add(last);
    }
  }
}
