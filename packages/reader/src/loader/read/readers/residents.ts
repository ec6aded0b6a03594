import type { ShardStore } from '../../../dataset/shards/shard-store.js';
import type { EpochPlan } from '../../../order/batches.js';
import type { SamplesOf } from '../../../selection/pass-samples.js';
import type { Arena } from '../arena.js';
import { blockItems, type LoadedShard } from '../block.js';
import { type LoadedSample, load, loadSamples } from '../load-shards.js';

export interface ResidentsOptions {
  /** The shards with the places of their samples in the arena. */
  readonly shards: ReadonlyMap<number, LoadedShard>;
  readonly arena: Arena;
  /** Samples that are read before all others. */
  readonly first: readonly LoadedSample[];
}

/**
 * Samples that are in memory for all epochs. The first batch may need a few of them. They are read first, so that it does not
 * wait for a whole dataset.
 */
export class Residents {
  readonly shards: ReadonlyMap<number, LoadedShard>;
  readonly #arena: Arena;
  readonly #first: readonly LoadedSample[];
  /** Rows of the samples that were read first, by shard. */
  readonly #rows = new Map<number, Set<number>>();
  #reading: Promise<void> = Promise.resolve();
  #store: ShardStore | null = null;
  #state: 'nothing' | 'reading' | 'loaded' | 'failed' = 'nothing';

  constructor({ shards, arena, first }: ResidentsOptions) {
    this.shards = shards;
    this.#arena = arena;
    this.#first = first;
  }

  /** Reads the first samples, and begins to read the others. Rejects with the error of the first samples only. */
  async open(store: ShardStore): Promise<void> {
    await loadSamples(this.#first, this.shards, { store, arena: this.#arena, place: 0 });
    for (const { shard, row } of this.#first) this.#rows.set(shard, (this.#rows.get(shard) ?? new Set()).add(row));
    await this.readRest(store);
  }

  /**
   * Begins to read the other samples, unless they are in memory. What an earlier loop reads, with its own store, may end with that
   * loop, so it is awaited first.
   */
  async readRest(store: ShardStore): Promise<void> {
    if (this.#state === 'reading' && this.#store !== store) await this.#reading.catch(() => {});
    if (this.#state === 'loaded' || this.#state === 'reading') return;
    this.#state = 'reading';
    this.#store = store;
    this.#reading = load(this.shards, { store, arena: this.#arena, place: 0 }, this.#first).then(
      () => {
        this.#state = 'loaded';
      },
      (error: unknown) => {
        this.#state = 'failed';
        throw error;
      },
    );
    // The batch that needs the samples receives the error.
    this.#reading.catch(() => {});
  }

  has(shard: number, row: number): boolean {
    return this.#state === 'loaded' || this.#rows.get(shard)?.has(row) === true;
  }

  /** Resolves when all samples are in memory. Rejects with the error of a read, and if the loop ended before. */
  whenLoaded(): Promise<void> {
    return this.#reading;
  }
}

/** The samples of the first batch of a plan, each once. */
export function firstSamples(plan: EpochPlan, samplesOf: SamplesOf): LoadedSample[] {
  const wanted = new Map<number, number[]>();
  const batch = plan.rows().next().value;
  if (batch === undefined) return [];
  for (let row = 0; row < batch.block.length; row++) {
    const ordinal = batch.block[row]!;
    wanted.set(ordinal, [...(wanted.get(ordinal) ?? []), batch.item[row]!]);
  }
  const samples = new Map<string, LoadedSample>();
  for (const planned of plan.blocks()) {
    if (wanted.size === 0) break;
    const { shard, row } = blockItems(planned, samplesOf);
    for (const item of wanted.get(planned.ordinal) ?? [])
      samples.set(`${shard[item]}/${row[item]}`, { shard: shard[item]!, row: row[item]! });
    wanted.delete(planned.ordinal);
  }
  return [...samples.values()];
}
