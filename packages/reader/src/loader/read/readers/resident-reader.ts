import type { ShardStore } from '../../../dataset/shard-store.js';
import type { PlannedBlock } from '../../../order/batches.js';
import type { SamplesOf } from '../../../selection/pass-samples.js';
import type { Arena } from '../arena.js';
import { type Block, type BlockReader, blockWithoutMemory, type LoadedShard } from '../block.js';
import { fetchSampleAgain } from '../fetch-again.js';

export interface ResidentOptions {
  readonly blocks: Iterator<PlannedBlock>;
  readonly samplesOf: SamplesOf;
  /** The loaded shards. Their stretches are in the arena. */
  readonly shards: ReadonlyMap<number, LoadedShard>;
  readonly store: ShardStore;
  readonly arena: Arena;
}

/** The blocks of an epoch over samples that are all in memory. They have no memory of their own. */
export class ResidentReader implements BlockReader {
  readonly #options: ResidentOptions;
  readonly #planned = new Map<number, Block>();

  constructor(options: ResidentOptions) {
    this.#options = options;
  }

  get(ordinal: number): Block {
    const { blocks } = this.#options;
    for (;;) {
      const block = this.#planned.get(ordinal);
      if (block !== undefined) return block;
      const next = blocks.next();
      if (next.done) throw new Error(`block ${ordinal} is not part of the plan`);
      this.#planned.set(next.value.ordinal, this.#block(next.value));
    }
  }

  release(block: Block): void {
    this.#planned.delete(block.ordinal);
  }

  fetchAgain(block: Block, item: number): Promise<boolean> {
    return fetchSampleAgain(block, item, this.#options.store, this.#options.arena);
  }

  async close(): Promise<void> {
    this.#planned.clear();
  }

  #block(planned: PlannedBlock): Block {
    const { samplesOf, shards } = this.#options;
    return blockWithoutMemory(this, planned, samplesOf, { shards, inShards: false });
  }
}
