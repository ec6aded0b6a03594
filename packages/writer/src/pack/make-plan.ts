import type { WrittenLayout } from '@shardtool/format';
import { recodeOptions } from '../options.js';
import { SKIPPED_FILE, writeListFile } from '../output/lists.js';
import type { OutputFolder } from '../output/output-folder.js';
import { planPath } from '../output/pack-state.js';
import type { Part } from '../output/parts.js';
import { type PlanHeader, readPlanHeader } from '../plan/plan-record.js';
import { BadFile, badFile } from '../source/source-file.js';
import { planSurvey, prepare } from './prepare.js';
import { checkPlan, checkPlannedOptions, publishPlan } from './publish-plan.js';
import { recordedOptions } from './recorded-options.js';
import { type PrepareWork, surveySource } from './survey.js';

/** What a pack works with. */
export interface PackWork extends PrepareWork {
  readonly folder: OutputFolder;
  readonly layout: WrittenLayout;
  readonly part: Part | null;
}

/** Plans, and makes the folder ready for the shards. */
export async function makePlan(work: PackWork): Promise<PlanHeader> {
  const { output, folder, layout, options, base } = work;
  const prepared = await prepare(work);
  try {
    if (base === null) await folder.clear();
    // How large an image will be when it is encoded anew is not known.
    if (recodeOptions(options) === null) folder.checkRoom(prepared.facts.shardBytes);
    const header = await publishPlan(folder, layout, prepared);
    await prepared.duplicates?.write(output);
    return header;
  } finally {
    prepared.close();
  }
}

/** Looks whether the plan that lies in the folder is still that of the source: where anything is new, by planning again. */
export async function resumePlan(work: PackWork): Promise<PlanHeader> {
  const { output } = work;
  const header = readPlanHeader(planPath(output));
  checkPlannedOptions(output, header, await recordedOptions(work.options, work.base));
  const survey = await surveySource(work);
  // Which images are duplicates is not known by sizes and times.
  if (!work.options.dedupe && survey.digest === header.sourceDigest) {
    survey.files.close();
    const [bad] = header.quarantined ?? [];
    if (bad !== undefined && work.options.onBad === 'stop') throw badFile(new BadFile(bad.reason), bad.path);
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
