import { extname } from 'node:path';
import { countOf, LabelsError, option, sentence } from '@shardtool/base';
import { listBeforePack } from '../../output/lists.js';
import { checkBadShare } from '../../output/quarantine.js';
import { OUTCOME, outcomeOf } from '../../plan/outcomes.js';
import type { PackPlan } from '../../plan/plan-shards.js';
import type { FileLabels } from '../../plan/shard-plan.js';
import type { QuarantinedFile } from '../../shard/shard-job.js';
import { type Labels, placeOfRow } from '../../source/labels/labels.js';
import { hasObjects } from '../../source/labels/objects.js';
import type { SourceFiles } from '../../source/source-files.js';
import type { PrepareWork } from '../workers/work.js';

/** A line of skipped.jsonl. */
interface SkippedFile {
  /** Path below the source. */
  readonly path: string;
  readonly reason: string;
}

/** Maximum number of extensions and other reasons that are counted separately; the rest is counted together. */
const MOST_COUNTED = 50;
const OTHERS = 'others';

/** Yields the files that are in no sample because of what they are, in the order of their paths. */
export function* skippedFiles(files: SourceFiles, { outcomes }: PackPlan): Generator<SkippedFile> {
  const reader = files.reader();
  for (let file = 0; file < outcomes.length; file++) {
    const { isSkipped, reason } = outcomeOf(outcomes[file]!);
    if (isSkipped) yield { path: reader.path(file), reason };
  }
}

/** Number of skipped files by extension or by another reason. */
export function countSkipped(files: SourceFiles, { outcomes }: PackPlan): Record<string, number> {
  const reader = files.reader();
  const counts = new Map<string, number>();
  for (let file = 0; file < outcomes.length; file++) {
    const { isSkipped, counted } = outcomeOf(outcomes[file]!);
    if (!isSkipped) continue;
    const name = counted ?? extname(reader.path(file)).slice(1).toLowerCase();
    const known = counts.has(name) || counts.size < MOST_COUNTED ? name : OTHERS;
    counts.set(known, (counts.get(known) ?? 0) + 1);
  }
  const named = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return Object.fromEntries(named);
}

/** Yields annotations that are in no sample, as lines of skipped.jsonl. */
export function* oddAnnotations(labels: Labels | null): Generator<object> {
  if (hasObjects(labels)) yield* labels.odd;
}

/** Number of these annotations by reason; empty if there are none. */
export function countOdd(labels: Labels | null): { readonly skippedAnnotations?: Record<string, number> } {
  if (!hasObjects(labels) || labels.odd.length === 0) return {};
  const counts: Record<string, number> = {};
  for (const { reason } of labels.odd) counts[reason] = (counts[reason] ?? 0) + 1;
  return { skippedAnnotations: counts };
}

/** Files with the key of another file, which are bad before any file is read. */
export function plannedQuarantine(files: SourceFiles, { collisions }: PackPlan): QuarantinedFile[] {
  const reader = files.reader();
  return [...collisions].map(([file, other]) => {
    const reason = `${reader.path(file)} would have the same key as ${reader.path(other)}, and only the latter is packed: rename ${reader.path(file)}.`;
    return { path: reader.path(file), reason };
  });
}

/** Rows of the labels whose file is missing, as entries of a list. */
export function missingFiles(labels: FileLabels | null, rows: readonly number[]): QuarantinedFile[] {
  return rows.map((row) => {
    const { table } = labels!;
    const path = table.path[row]!;
    const reason = `${placeOfRow(table, row)} names ${path}, which is not among the files of the source.`;
    return { path, reason };
  });
}

/** Number of images without a row in the labels. */
export function unlabelledIn({ outcomes }: PackPlan): number {
  return outcomes.reduce((sum, outcome) => sum + (outcome === OUTCOME.noRow ? 1 : 0), 0);
}

/** Throws {@link LabelsError} if an image has no row. */
export function checkAllLabelled(files: SourceFiles, plan: PackPlan, labels: FileLabels | null): void {
  const unlabelled = unlabelledIn(plan);
  if (unlabelled === 0) return;
  const first = files.reader().path(plan.outcomes.indexOf(OUTCOME.noRow));
  throw notAllLabelled(labels!.table.location, unlabelled, first);
}

export function notAllLabelled(location: string, unlabelled: number, first?: string): LabelsError {
  const example = first === undefined ? '' : ` (the first: ${first})`;
  const message = sentence`${location} has no row for ${countOf(unlabelled, 'image')} of the source${example}, but ${option('requireLabels')} requires one; add rows, or exclude these images with ${option('exclude')}.`;
  return new LabelsError({ path: location }, message);
}

/** Throws TooManyBadError, after all bad files were written to a list, if there is a folder for it. */
export async function checkPlannedBad(
  { output, options }: PrepareWork,
  quarantined: readonly QuarantinedFile[],
  samples: number,
): Promise<void> {
  if (quarantined.length === 0 || options.dryRun) return;
  try {
    const listed = sentence`them; no image was opened yet, and ${option('dryRun')} with ${option('check', 'header')} also finds bad images`;
    checkBadShare(quarantined, samples + quarantined.length, options.maxBad, listed);
  } catch (error) {
    await listBeforePack(output, options.format, quarantined, []);
    throw error;
  }
}
