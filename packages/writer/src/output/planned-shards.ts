import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { WrittenLayoutName } from '@shardtool/format';
import { PartsMissingError } from '../errors.js';
import type { OtherIndex } from '../options.js';
import type { PlanHeader } from '../plan/plan-record.js';
import type { ShardResult } from '../shard/shard-job.js';
import { numberedStem } from '../shard/shard-paths.js';
import { NOTE_EXTENSION, STATE_FOLDER } from './pack-state.js';
import { checkBadShare } from './quarantine.js';
import { hasSize, readShardNote } from './shard-note.js';

/** Options of a plan that determine the names and the format of its shards. */
export interface PlannedTarget {
  readonly format: WrittenLayoutName;
  readonly name: string;
  readonly index: readonly OtherIndex[];
}

export function plannedTarget({ options }: PlanHeader): PlannedTarget {
  return options as unknown as PlannedTarget;
}

/** Names of the shards without extension, by number. */
export function stemsOf(header: PlanHeader): string[] {
  const { name } = plannedTarget(header);
  const first = header.base?.firstShard ?? 0;
  return header.shards.map((_, shard) => numberedStem(name, first + shard));
}

/** Number of shards of the plan that are not finished yet. */
export function countMissing(output: string, header: PlanHeader): number {
  return missingStems(output, header).length;
}

/** Opening the folder, like reading it, makes a network file system refresh its contents. */
function missingStems(output: string, header: PlanHeader): string[] {
  const noted = new Set(readdirSync(join(output, STATE_FOLDER)));
  return stemsOf(header).filter((stem) => !noted.has(`${stem}${NOTE_EXTENSION}`));
}

/**
 * Returns the notes of all shards. Throws {@link PartsMissingError} if a shard is not finished or differs from its
 * note, and TooManyBadError if more than the share `maxBad` of all samples is bad.
 */
export async function readAllNotes(
  output: string,
  header: PlanHeader,
  maxBad: number,
): Promise<readonly ShardResult[]> {
  const missing = missingStems(output, header);
  if (missing.length > 0) throw missingError(output, missing, header.shards.length);
  const results: ShardResult[] = [];
  for (const stem of stemsOf(header)) {
    const result = readShardNote<ShardResult>(output, stem, header.digest);
    if (result === null || !hasSize(join(output, result.file), result.bytes)) {
      throw missingError(output, [stem], header.shards.length);
    }
    results.push(result);
  }
  checkBadShare(
    [...(header.quarantined ?? []), ...results.flatMap(({ quarantined }) => quarantined)],
    plannedSamples(header),
    maxBad,
  );
  return results;
}

/** Number of samples if none were bad. */
export function plannedSamples({ samples, quarantined = [] }: PlanHeader): number {
  return samples + quarantined.length;
}

function missingError(output: string, stems: readonly string[], shards: number): PartsMissingError {
  const named = stems.slice(0, 5).join(', ') + (stems.length > 5 ? ', ...' : '');
  return new PartsMissingError(
    { path: output, shard: stems[0] },
    `${stems.length} of the ${shards} shards of ${output} are not finished (${named}); pack again, and finished shards are kept.`,
  );
}
