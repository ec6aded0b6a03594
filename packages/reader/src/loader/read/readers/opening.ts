import type { EpochPlan } from '../../../order/batches.js';
import type { Selection } from '../../../selection/selection.js';
import type { ShardStore } from '../load-shards.js';

/** What the first batches of an epoch need, where each read takes a while: it comes before whole blocks. */
export interface Opening {
  /** By block, its items. */
  readonly items: ReadonlyMap<number, readonly number[]>;
  /** Blocks of the very first batch: nothing else is asked for before they are there. 0: whoever reads puts them in front. */
  readonly first: number;
}

export const NO_OPENING: Opening = { items: new Map(), first: 0 };

/** The opening of an epoch: as many batches as come to no block once more. */
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

/** Has the indexes that the first batch needs fetched, while something else is waited for; what goes wrong is heard later. */
export function fetchFirstIndexes(
  { plan, selection }: { readonly plan: EpochPlan; readonly selection: Selection },
  store: Pick<ShardStore, 'index'>,
): void {
  const wanted = new Set(plan.rows().next().value?.block);
  for (const { ordinal, pieces } of plan.blocks()) {
    if (wanted.size === 0) return;
    if (!wanted.delete(ordinal)) continue;
    for (const { shard } of pieces) if (selection.counts[shard]! > 0) store.index(shard).catch(() => {});
  }
}
