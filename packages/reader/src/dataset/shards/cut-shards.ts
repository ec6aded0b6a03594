import { ShardLengthError } from './shard-length-error.js';
import type { ShardBytes, ShardStore } from './shard-store.js';

/** The ends of shards that are shorter than their indexes say, for loaders that skip or replace bad samples. */
export class CutShards {
  readonly #ends = new Map<number, number>();

  /** The byte at which a shard was found to end. Infinity if no read has come to its end. */
  endOf(shard: number): number {
    return this.#ends.get(shard) ?? Number.POSITIVE_INFINITY;
  }

  /** Wraps a store so that a read beyond the end of a shard is filled with zeros, and the end is known afterwards. */
  within(store: ShardStore): ShardStore {
    const { bytes } = store;
    return {
      ...store,
      bytes: {
        read: (range, target) => this.#read(bytes, range, target),
        get mayDiffer() {
          return bytes.mayDiffer;
        },
      },
    };
  }

  async #read(bytes: ShardBytes, range: Parameters<ShardBytes['read']>[0], target: Uint8Array): Promise<void> {
    let there = target;
    while (there.length > 0) {
      try {
        await bytes.read(range, there);
        return;
      } catch (error) {
        if (!(error instanceof ShardLengthError) || range.file !== 'shard') throw error;
        const end = error.offset!;
        this.#ends.set(range.shard, Math.min(end, this.endOf(range.shard)));
        // Of a long read, only some parts may have been read before the error.
        const left = Math.max(0, Math.min(end - range.offset, there.length - 1));
        there.fill(0, left);
        there = there.subarray(0, left);
      }
    }
  }
}

/** The reason why a sample of such a shard is bad. */
export function cutReason({ end, needed }: { readonly end: number; readonly needed: number }): string {
  return `its shard ends at byte ${end}, but its index refers to bytes up to ${needed}`;
}
