import { inTurn, range, totalOf } from '@shardtool/base';
import type { RowPlace } from '@shardtool/format';
import { KeyTable } from '../../dataset/keys/key-table.js';
import type { StoredParts } from '../../dataset/stored-dataset.js';

const READ_AT_ONCE = 8;

/** Finds the current positions of the samples of an older version. */
export class MovedPlaces {
  readonly #old: StoredParts;
  /** Current number of each old shard that still exists. */
  readonly #same: ReadonlyMap<number, number>;
  /** Keys of the new shards, in their order. */
  readonly #keys: KeyTable;
  /** Position of each sample in {@link #keys}. */
  readonly #shards: readonly { readonly shard: number; readonly first: number }[];

  private constructor(
    old: StoredParts,
    same: ReadonlyMap<number, number>,
    keys: KeyTable,
    shards: readonly { readonly shard: number; readonly first: number }[],
  ) {
    this.#old = old;
    this.#same = same;
    this.#keys = keys;
    this.#shards = shards;
  }

  static async between(old: StoredParts, now: StoredParts): Promise<MovedPlaces> {
    const names = new Map(now.shards.map((file, shard) => [nameOf(file), shard]));
    const same = new Map<number, number>();
    const known = new Set<number>();
    old.shards.forEach((file, shard) => {
      const found = names.get(nameOf(file));
      if (found === undefined) return;
      same.set(shard, found);
      known.add(found);
    });
    const added = now.shards.map((file, shard) => ({ file, shard })).filter(({ shard }) => !known.has(shard));
    const keys = new KeyTable(totalOf(added, ({ file }) => file.samples));
    const shards: { shard: number; first: number }[] = [];
    let first = 0;
    for await (const { shard, key } of inTurn(added, READ_AT_ONCE, async ({ file, shard }) => ({
      shard,
      key: (await file.loadParts(['key'])).key,
    }))) {
      shards.push({ shard, first });
      keys.add(key);
      first += key.length;
    }
    return new MovedPlaces(old, same, keys, shards);
  }

  ofKey([shard, row]: RowPlace, key: string): RowPlace | null {
    const same = this.#same.get(shard);
    if (same !== undefined) return [same, row];
    const number = this.#keys.numberOf(key);
    if (number < 0) return null;
    const at = this.#shards.findLast(({ first }) => first <= number)!;
    return [at.shard, number - at.first];
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
    return key.map((one, row) => this.ofKey([shard, row], one));
  }
}

function nameOf({ name, crc32 }: { readonly name: string; readonly crc32?: string | undefined }): string {
  return `${name} ${crc32}`;
}
