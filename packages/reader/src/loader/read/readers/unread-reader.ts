import type { LoadedIndex } from '@shardtool/format';
import type { ShardStore } from '../../../dataset/shard-store.js';
import type { PlannedBlock } from '../../../order/batches.js';
import type { SamplesOf } from '../../../selection/pass-samples.js';
import { type Block, type BlockReader, blockWithoutMemory, type LoadedShard } from '../block.js';

export interface UnreadOptions {
  readonly blocks: Iterator<PlannedBlock>;
  readonly samplesOf: SamplesOf;
  readonly store: Pick<ShardStore, 'indexes'>;
}

/** All of a shard as one stretch, so that offsets stay the same. */
const WHOLE_SHARD = [{ offset: 0, bytes: Number.POSITIVE_INFINITY, at: 0 }] as const;

/** A shard that is not in memory. */
export function wholeShard(index: LoadedIndex): LoadedShard {
  return { index, stretches: WHOLE_SHARD, crops: null };
}

/** The blocks of an epoch that is not read ahead: workers read the images from the shards. */
export class UnreadReader implements BlockReader {
  readonly #options: UnreadOptions;
  readonly #planned = new Map<number, Block>();

  constructor(options: UnreadOptions) {
    this.#options = options;
  }

  get(ordinal: number): Block | Promise<Block> {
    return this.#planned.get(ordinal) ?? this.#plan(ordinal);
  }

  release(block: Block): void {
    this.#planned.delete(block.ordinal);
  }

  async close(): Promise<void> {
    this.#planned.clear();
  }

  async #plan(ordinal: number): Promise<Block> {
    const { blocks } = this.#options;
    for (;;) {
      const next = blocks.next();
      if (next.done) throw new Error(`block ${ordinal} is not part of the plan`);
      const block = await this.#block(next.value);
      this.#planned.set(block.ordinal, block);
      if (block.ordinal === ordinal) return block;
    }
  }

  async #block(planned: PlannedBlock): Promise<Block> {
    const { samplesOf, store } = this.#options;
    const { firstShard } = samplesOf(planned.source, planned.pass);
    const shards = new Map<number, LoadedShard>();
    for (const { shard: own } of planned.pieces) {
      const shard = firstShard + own;
      if (!shards.has(shard)) shards.set(shard, wholeShard(await store.indexes.index(shard)));
    }
    return blockWithoutMemory(this, planned, samplesOf, { shards, inShards: true });
  }
}
