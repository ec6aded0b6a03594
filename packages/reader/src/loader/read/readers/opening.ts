import type { ShardStore } from '../../../dataset/shards/shard-store.js';
import type { EpochPlan } from '../../../order/batches.js';
import type { SamplesOf } from '../../../selection/pass-samples.js';

/** Data that the first batches of an epoch need. On slow storage, it is read before whole blocks. */
export interface Opening {
  /** Needed items, by the ordinal of their block. */
  readonly items: ReadonlyMap<number, readonly number[]>;
  /**
   * Number of blocks of the first batch. Nothing else is requested before they are loaded. 0 if the reading threads set
   * priorities themselves.
   */
  readonly first: number;
}

export const NO_OPENING: Opening = { items: new Map(), first: 0 };

/**
 * The opening of an epoch: the data of the first batches, up to the first batch that needs a block of an earlier one
 * again.
 */
export function openingOf(plan: EpochPlan): Opening {
  const items = new Map<number, number[]>();
  let first = 0;
  for (const { block, item } of plan.rows()) {
    if (items.size > 0 && Array.prototype.some.call(block, (ordinal: number) => items.has(ordinal))) break;
    for (let row = 0; row < block.length; row++) {
      const wanted = items.get(block[row]!);
      if (wanted === undefined) items.set(block[row]!, [item[row]!]);
      else wanted.push(item[row]!);
    }
    if (first === 0) first = items.size;
  }
  return { items, first };
}

/** Requests the indexes that the first batch needs, without waiting for them. An error is thrown when an index is used. */
export function fetchFirstIndexes(
  plan: EpochPlan,
  samplesOf: SamplesOf,
  { indexes }: Pick<ShardStore, 'indexes'>,
): void {
  const wanted = new Set(plan.rows().next().value?.block);
  for (const { ordinal, source, pass, pieces } of plan.blocks()) {
    if (wanted.size === 0) return;
    if (!wanted.delete(ordinal)) continue;
    const { firstShard } = samplesOf(source, pass);
    for (const { shard } of pieces) indexes.index(firstShard + shard).catch(() => {});
  }
}
