import type { ShardStore } from '../../../dataset/shards/shard-store.js';
import type { EpochPlan } from '../../../order/batches.js';
import type { Unit } from '../../../order/units.js';
import type { SamplesOf } from '../../../selection/pass-samples.js';
import type { Selection } from '../../../selection/selection.js';
import type { Place } from '../../progress.js';

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

/** Number of indexes that are requested at once, if those of all shards are needed. */
const FIRST_INDEXES = 64;

/** Requests the indexes that are needed first, without waiting for them. An error is thrown when an index is used. */
export function fetchFirstIndexes(order: FirstOrder, { indexes }: Pick<ShardStore, 'indexes'>): void {
  for (const shard of firstShards(order)) indexes.index(shard).catch(() => {});
}

/** The order of a run, as far as its beginning is concerned. */
interface FirstOrder {
  readonly unit: Unit;
  readonly begin: Place;
  readonly all: Selection;
  readonly samplesOf: SamplesOf;
  plan(place: Place): EpochPlan;
}

/** The shards of the first batch. If all samples are read first, the first shards. */
function firstShards({ unit, begin, all, samplesOf, plan }: FirstOrder): number[] {
  if (unit === 'sample') {
    const shards = Array.from(all.counts, (samples, shard) => (samples > 0 ? shard : -1));
    return shards.filter((shard) => shard >= 0).slice(0, FIRST_INDEXES);
  }
  const whole = plan(begin);
  const blocks = whole.under ?? whole;
  const wanted = new Set(blocks.rows().next().value?.block);
  const shards: number[] = [];
  for (const { ordinal, source, pass, pieces } of blocks.blocks()) {
    if (wanted.size === 0) break;
    if (!wanted.delete(ordinal)) continue;
    const { firstShard } = samplesOf(source, pass);
    for (const { shard } of pieces) shards.push(firstShard + shard);
  }
  return shards;
}
