import type { ShardStore } from '../../../dataset/shards/shard-store.js';
import type { PlannedBlock } from '../../../order/batches.js';
import type { SamplesOf } from '../../../selection/pass-samples.js';
import type { Arena } from '../arena.js';
import { type Block, type BlockReader, blockWithoutMemory } from '../block.js';
import { fetchSampleAgain } from '../fetch-again.js';
import type { Residents } from './residents.js';

export interface ResidentOptions {
  readonly blocks: Iterator<PlannedBlock>;
  readonly samplesOf: SamplesOf;
  readonly residents: Residents;
  readonly store: ShardStore;
  readonly arena: Arena;
}

/** The blocks of an epoch over samples that are all in memory, or being read into it. They own no memory. */
export class ResidentReader implements BlockReader {
  readonly #options: ResidentOptions;
  readonly #planned = new Map<number, Block>();

  constructor(options: ResidentOptions) {
    this.#options = options;
  }

  get(ordinal: number, item: number): Block | Promise<Block> {
    const { residents } = this.#options;
    const block = this.#blockOf(ordinal);
    if (residents.has(block.shard[item]!, block.row[item]!)) return block;
    return residents.whenLoaded().then(() => block);
  }

  #blockOf(ordinal: number): Block {
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
    await this.#options.residents.whenLoaded().catch(() => {});
    this.#planned.clear();
  }

  #block(planned: PlannedBlock): Block {
    const { samplesOf, residents } = this.#options;
    const { shards } = residents;
    const block = blockWithoutMemory(this, planned, samplesOf, { shards, inShards: false });
    return { ...block, whole: residents.whenLoaded() };
  }
}
