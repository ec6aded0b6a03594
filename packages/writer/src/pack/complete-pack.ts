import { commitDataset, type PartialField } from '../output/commit.js';
import { removeState } from '../output/pack-state.js';
import { plannedTarget } from '../output/planned-shards.js';
import { writeQuarantine } from '../output/quarantine.js';
import type { PlanHeader } from '../plan/plan-record.js';
import type { ShardResult } from '../shard/shard-job.js';
import type { AppendBase } from './append.js';

/**
 * Makes all shards of a plan, in their order, a dataset, or adds them to `base`, and removes what only a pack at work
 * needs.
 */
export async function completePack(
  output: string,
  header: PlanHeader,
  results: readonly ShardResult[],
  base: AppendBase | null = null,
): Promise<readonly PartialField[]> {
  const { format, index: otherIndexes } = plannedTarget(header);
  const bad = results.flatMap(({ quarantined }) => quarantined);
  await writeQuarantine(output, [...(base?.quarantined ?? []), ...(header.quarantined ?? []), ...bad]);
  const { classes, columns } = header;
  const facts = { format, classes, columns, otherIndexes, base: base?.manifest };
  const partialFields = await commitDataset(output, results, facts);
  removeState(output);
  return partialFields;
}
