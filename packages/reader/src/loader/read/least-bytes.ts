import type { EpochPlan, PlannedBlock } from '../../order/batches.js';
import type { SamplesOf } from '../../selection/pass-samples.js';
import { placeBytes, SEGMENT_BYTES } from './arena.js';
import { blockRows } from './block.js';
import { type PlannedStore, planLoad } from './load-shards.js';

/**
 * Maximum number of rows that are followed, which takes about a second. By then, every stream of a large dataset is
 * well under way.
 */
const FOLLOWED_ROWS = 2 ** 20;
/** Number of epochs that are followed, because other epochs divide the same samples into other blocks. */
const FOLLOWED_EPOCHS = 64;
const HEADROOM = 1 / 16;

/**
 * Returns the minimum memory for reading that these epochs need, in bytes, with a margin for later epochs. The plans
 * are followed batch by batch: a block is loaded for its first row, and freed when the batch with its last row is
 * delivered. Reads the indexes of the shards, but no shard.
 */
export async function leastBytes(
  epochs: Iterable<EpochPlan>,
  samplesOf: SamplesOf,
  store: PlannedStore,
): Promise<number> {
  let [most, largest, rows, followed] = [0, 0, 0, 0];
  for (const epoch of epochs) {
    const bytesOf = async (block: PlannedBlock) =>
      placeBytes((await planLoad(blockRows(block, samplesOf), store)).bytes);
    const peak = await epochPeak(epoch, bytesOf, FOLLOWED_ROWS - rows);
    most = Math.max(most, peak.bytes);
    largest = Math.max(largest, peak.largest);
    rows += peak.rows;
    followed++;
    if (rows >= FOLLOWED_ROWS || followed === FOLLOWED_EPOCHS) break;
  }
  // A block cannot cross the end of a segment, so each segment may have unused bytes at its end.
  const leftOver = Math.floor(most / SEGMENT_BYTES) * largest;
  return placeBytes((most + leftOver) * (1 + HEADROOM));
}

async function epochPeak(
  plan: EpochPlan,
  bytesOf: (block: PlannedBlock) => Promise<number>,
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
        const bytes = await bytesOf(planned);
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
