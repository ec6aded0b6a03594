import type { EpochPlan } from '../../order/batches.js';
import type { Selection } from '../../selection/selection.js';
import { placeBytes, SEGMENT_BYTES } from './arena.js';
import { blockRows } from './block.js';
import { type PlannedStore, planLoad } from './load-shards.js';

/** So many rows are followed at most, about a second's work; by then every stream of a large dataset is well under way. */
const FOLLOWED_ROWS = 2 ** 20;
/** Other epochs lay the same samples into other blocks. */
const FOLLOWED_EPOCHS = 64;
const HEADROOM = 1 / 16;

/** One of the epochs to come. */
export interface UpcomingEpoch {
  readonly plan: EpochPlan;
  readonly selection: Selection;
}

/**
 * The least read memory with which these epochs can be delivered, in bytes, with a little more for those behind: the plans
 * are followed batch by batch, where a block comes with its first row and goes when the batch with its last row is
 * delivered. Reads the indexes of the shards, and no shard.
 */
export async function leastBytes(epochs: Iterable<UpcomingEpoch>, store: PlannedStore): Promise<number> {
  let [most, largest, rows, followed] = [0, 0, 0, 0];
  for (const epoch of epochs) {
    const peak = await epochPeak(epoch, store, FOLLOWED_ROWS - rows);
    most = Math.max(most, peak.bytes);
    largest = Math.max(largest, peak.largest);
    rows += peak.rows;
    followed++;
    if (rows >= FOLLOWED_ROWS || followed === FOLLOWED_EPOCHS) break;
  }
  // No block goes across the end of a segment, where so much may be left over.
  const leftOver = Math.floor(most / SEGMENT_BYTES) * largest;
  return placeBytes((most + leftOver) * (1 + HEADROOM));
}

async function epochPeak(
  { plan, selection }: UpcomingEpoch,
  store: PlannedStore,
  mostRows: number,
): Promise<{ bytes: number; largest: number; rows: number }> {
  const blocks = plan.blocks();
  const live = new Map<number, { readonly bytes: number; left: number }>();
  const peak = { bytes: 0, largest: 0, rows: 0 };
  let held = 0;
  for (const batch of plan.rows()) {
    let finished = 0;
    for (const ordinal of batch.block) {
      let block = live.get(ordinal);
      if (block === undefined) {
        const planned = blocks.next().value!;
        const bytes = placeBytes((await planLoad(blockRows(planned, selection), store)).bytes);
        block = { bytes, left: planned.uses };
        live.set(ordinal, block);
        held += bytes;
        peak.bytes = Math.max(peak.bytes, held);
        peak.largest = Math.max(peak.largest, bytes);
      }
      block.left--;
      if (block.left > 0) continue;
      live.delete(ordinal);
      finished += block.bytes;
    }
    held -= finished;
    peak.rows += batch.block.length;
    if (peak.rows >= mostRows) break;
  }
  return peak;
}
