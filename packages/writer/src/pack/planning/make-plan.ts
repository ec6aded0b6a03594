import { recodeOptions } from '../../options.js';
import { SENT_AT_ONCE } from '../../output/bucket/bucket-output.js';
import { SKIPPED_FILE, writeListFile } from '../../output/lists.js';
import { planPath } from '../../output/pack-state.js';
import { type PlanHeader, readPlanHeader } from '../../plan/plan-record.js';
import { BadFile, badFile } from '../../source/source-file.js';
import type { PackWork } from '../workers/work.js';
import { planSurvey, prepare } from './prepare.js';
import { announceFound, checkPlan, checkPlannedOptions, publishPlan } from './publish-plan.js';
import { recordedOptions } from './recorded-options.js';
import { notAllLabelled } from './skipped.js';
import { surveySource } from './survey.js';

/** Plans, and prepares the folder for the shards. */
export async function makePlan(work: PackWork): Promise<PlanHeader> {
  const { output, folder, destination, layout, options, base } = work;
  const prepared = await prepare(work);
  try {
    if (base === null) {
      await folder.clear();
      await destination.removeGone();
    }
    // The size of a re-encoded image is not known in advance.
    if (recodeOptions(options) === null) folder.checkRoom(roomFor(work, prepared.facts.shardBytes), 'The pack');
    const header = await publishPlan(folder, destination, layout, prepared);
    await prepared.duplicates?.write(output);
    await destination.sendNotes();
    return header;
  } finally {
    prepared.close();
  }
}

/** Disk space needed in the folder. Shards that are uploaded are deleted from it again. */
function roomFor({ destination, options }: PackWork, shardBytes: number): number {
  if (!destination.isElsewhere) return shardBytes;
  return Math.min(shardBytes, (options.workers + SENT_AT_ONCE) * options.maxShardBytes);
}

/**
 * Checks that the plan in the folder is still valid for the source. If anything has changed, plans again to compare.
 */
export async function resumePlan(work: PackWork): Promise<PlanHeader> {
  const { output, folder, destination, layout } = work;
  const header = readPlanHeader(planPath(output));
  checkPlannedOptions(output, header, await recordedOptions(work.options, work.base));
  await announceFound(folder, destination, layout, header);
  const survey = await surveySource(work);
  // Sizes and times do not show which images are duplicates.
  if (!work.options.dedupe && survey.digest === header.sourceDigest) {
    survey.files.close();
    const [bad] = header.quarantined ?? [];
    if (bad !== undefined && work.options.onBad === 'raise') throw badFile(new BadFile(bad.reason), bad.path);
    if (work.options.requireLabels && header.unlabelled !== undefined)
      throw notAllLabelled(survey.labels!.table.location, header.unlabelled);
    return header;
  }
  const prepared = await planSurvey(work, survey);
  try {
    checkPlan(output, header, prepared);
    await prepared.duplicates?.write(output);
    await writeListFile(output, SKIPPED_FILE, prepared.skipped());
    return header;
  } finally {
    prepared.close();
  }
}
