import { readManifest, sidecarPath } from '@shardtool/format';
import { findPlan, isCommitted } from '../output/pack-state.js';
import { isDatasetOf } from '../output/same-dataset.js';
import type { PlanHeader } from '../plan/plan-record.js';
import { commitWhenComplete } from './commit-plan.js';
import { makePlan } from './planning/make-plan.js';
import { prepare } from './planning/prepare.js';
import { announceFound, checkPlannedOptions, sharedPlan } from './planning/publish-plan.js';
import { recordedOptions } from './planning/recorded-options.js';
import { committedReport, type PackReport, writtenReport } from './report.js';
import { packShards } from './workers/pack-shards.js';
import type { PackWork } from './workers/work.js';

/** Packs the shards of one part. The first part makes the plan for all, and the last one commits. */
export async function packPart(work: PackWork): Promise<PackReport> {
  const { output, folder, destination, layout, options } = work;
  const found = await sharedPlan(output, () => makePlan(work), options.signal);
  if (found === null) return checkCommitted(work);
  const { header, isMine } = found;
  if (!isMine) {
    checkPlannedOptions(output, header, await recordedOptions(options));
    await announceFound(folder, destination, layout, header);
  }
  const report = await packTurns(work, header, isMine);
  if (report.isCommitted) await destination.commit();
  return report;
}

/** Packs the shards of this part, and makes a dataset of all parts if none is missing. */
async function packTurns(work: PackWork, header: PlanHeader, isMine: boolean): Promise<PackReport> {
  const { output, destination, options, ticker } = work;
  try {
    const shards = await packShards(work, header, !isMine);
    ticker.begin('commit', header.files, header.sourceBytes);
    // Fetches the work of other parts.
    await destination.fetch(false);
    const { pendingShards, partialFields } = await commitWhenComplete(output, header, options);
    return { ...writtenReport(header, shards), partialFields, pendingShards, isCommitted: pendingShards === 0 };
  } catch (error) {
    // If a part is run again while others end, the plan may be gone because everything is done.
    if (!isCommitted(output) || findPlan(output) !== null) throw error;
    return committedReport(header);
  }
}

/** Throws OutputNotEmptyError unless the dataset in the folder is the one that this part belongs to. */
async function checkCommitted(work: PackWork): Promise<PackReport> {
  const { folder, destination, layout, output, options } = work;
  const { shards } = await readManifest(output);
  await destination.fetchFiles(shards.map(({ file }) => sidecarPath('index', file)));
  const prepared = await prepare(work);
  try {
    if (!(await isDatasetOf(output, layout, options.name, prepared))) folder.refuseDataset();
    return committedReport(prepared.facts);
  } finally {
    prepared.close();
  }
}
