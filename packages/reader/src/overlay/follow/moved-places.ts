import { lastAtMost, range } from '@shardtool/base';
import type { RowPlace } from '@shardtool/format';
import { keysOfShards } from '../../dataset/keys/keys-of-shards.js';
import type { Keys } from '../../dataset/keys/unknown-key.js';
import type { StoredParts } from '../../dataset/stored-dataset.js';

/** Finds the current positions of the samples of an older version. */
export class MovedPlaces {
  readonly #old: StoredParts;
  /** Current number of each old shard that still exists. */
  readonly #same: ReadonlyMap<number, number>;
  /** Numbers of the new shards. */
  readonly #added: readonly number[];
  /** Number of samples in the new shards before each of them, and in all. */
  readonly #firstSample: readonly number[];
  /** Keys of the samples in the new shards. */
  readonly #keys: Keys;

  private constructor(
    old: StoredParts,
    same: ReadonlyMap<number, number>,
    added: readonly number[],
    firstSample: readonly number[],
    keys: Keys,
  ) {
    this.#old = old;
    this.#same = same;
    this.#added = added;
    this.#firstSample = firstSample;
    this.#keys = keys;
  }

  static async between(old: StoredParts, now: StoredParts): Promise<MovedPlaces> {
    const names = new Map(now.shards.map((file, shard) => [nameOf(file), shard]));
    const same = new Map<number, number>();
    old.shards.forEach((file, shard) => {
      const found = names.get(nameOf(file));
      if (found !== undefined) same.set(shard, found);
    });
    const known = new Set(same.values());
    const added = [...now.shards.keys()].filter((shard) => !known.has(shard));
    const firstSample = [0];
    for (const shard of added) firstSample.push(firstSample.at(-1)! + now.shards[shard]!.samples);
    const keysOf = async (at: number) => (await now.shards[added[at]!]!.loadParts(['key'])).key;
    return new MovedPlaces(old, same, added, firstSample, await keysOfShards({ firstSample, keysOf }));
  }

  async ofKey([shard, row]: RowPlace, key: string): Promise<RowPlace | null> {
    const same = this.#same.get(shard);
    if (same !== undefined) return [same, row];
    const number = await this.#keys.numberOf(key);
    if (number < 0) return null;
    const at = lastAtMost(this.#firstSample, number, this.#added.length);
    return [this.#added[at]!, number - this.#firstSample[at]!];
  }

  /** Returns the current number of an old shard; null if it does not exist any more. */
  ofShard(shard: number): number | null {
    return this.#same.get(shard) ?? null;
  }

  /** Returns the positions of all rows of an old shard. */
  async ofRows(shard: number): Promise<readonly (RowPlace | null)[]> {
    const file = this.#old.shards[shard]!;
    if (this.#same.has(shard)) return range(file.samples).map((row) => [this.#same.get(shard)!, row]);
    const { key } = await file.loadParts(['key']);
    const places: (RowPlace | null)[] = [];
    for (const [row, one] of key.entries()) places.push(await this.ofKey([shard, row], one));
    return places;
  }
}

function nameOf({ name, crc32 }: { readonly name: string; readonly crc32?: string | undefined }): string {
  return `${name} ${crc32}`;
}
