/**
 * The samples that a loader has delivered after their checksums were found right. This takes one bit for each sample of the
 * shards that were read, and none for a shard whose samples were all checked.
 */
export class CheckedSamples {
  /** Number of samples of each shard. */
  readonly #samples: ArrayLike<number>;
  readonly #shards: (ShardBits | undefined)[];
  #count = 0;

  constructor(samples: ArrayLike<number>) {
    this.#samples = samples;
    this.#shards = new Array<ShardBits | undefined>(samples.length);
  }

  /** Number of samples that were checked. */
  get count(): number {
    return this.#count;
  }

  has(shard: number, row: number): boolean {
    const found = this.#shards[shard];
    if (found === undefined) return false;
    return found.bits === null || (found.bits[row >>> 3]! & (1 << (row & 7))) !== 0;
  }

  add(shard: number, row: number): void {
    let found = this.#shards[shard];
    if (found === undefined) {
      const samples = this.#samples[shard]!;
      found = { bits: new Uint8Array(Math.ceil(samples / 8)), left: samples };
      this.#shards[shard] = found;
    }
    const { bits } = found;
    const bit = 1 << (row & 7);
    if (bits === null || (bits[row >>> 3]! & bit) !== 0) return;
    bits[row >>> 3]! |= bit;
    this.#count++;
    found.left--;
    if (found.left === 0) found.bits = null;
  }
}

interface ShardBits {
  /** Bit `row % 8` of byte `row / 8` is 1 for a sample that was checked. Null if all were. */
  bits: Uint8Array | null;
  /** Number of samples that were not checked. */
  left: number;
}
