import { readManifest } from '@shardtool/format';
import type { PackState } from '../output/output-folder.js';
import { isMadeFrom } from '../output/pack-note.js';
import { checkShardsThere } from '../output/same-dataset.js';
import type { PlanHeader } from '../plan/plan-record.js';
import type { ReplacedBase } from './apply-changes.js';
import { completePack } from './commit-plan.js';
import { makePlan, resumePlan } from './planning/make-plan.js';
import { madeFrom, recordedOptions } from './planning/recorded-options.js';
import { surveySource } from './planning/survey.js';
import { type PackReport, presentReport, writtenReport } from './report.js';
import { packShards } from './workers/pack-shards.js';
import type { PackWork } from './workers/work.js';

/**
 * Packs the whole dataset, or the shards that an earlier pack has not finished. Does nothing if the dataset is
 * complete.
 */
export async function packWhole(work: PackWork, found: PackState): Promise<PackReport> {
  if (found === 'dataset') return checkPacked(work);
  return packAndCommit(work, found === 'plan' ? await resumePlan(work) : await makePlan(work));
}

/** Writes all shards of a plan and makes them a dataset, or adds them to one. */
export async function packAndCommit(work: PackWork, header: PlanHeader): Promise<PackReport> {
  const shards = await packShards(work, header, false);
  work.ticker.begin('commit', header.files, header.sourceBytes);
  shards.sort((a, b) => a.shard - b.shard);
  await work.destination.whenSent();
  const replaced = header.replaced === undefined ? null : await replacedBase(work, header.replaced);
  const completed = await completePack(work.output, work.folder.lock, header, shards, work.base, replaced?.manifest);
  await work.destination.commit();
  await replaced?.finish();
  return { ...writtenReport(header, shards), ...completed, isCommitted: true };
}

/** Loads the reader only if samples of the dataset change. */
async function replacedBase(work: PackWork, rows: NonNullable<PlanHeader['replaced']>): Promise<ReplacedBase> {
  return (await import('./apply-changes.js')).withoutReplaced(work, rows);
}

/** Throws OutputNotEmptyError unless the dataset in the folder is the result of this source and these options. */
async function checkPacked(work: PackWork): Promise<PackReport> {
  const { folder, output, destination, options } = work;
  const survey = await surveySource(work);
  survey.files.close();
  const digest = madeFrom({ options: await recordedOptions(options), sourceDigest: survey.digest });
  if (!isMadeFrom(output, digest!)) folder.refuseDataset(!destination.isElsewhere);
  const manifest = await readManifest(output);
  checkShardsThere(output, manifest);
  return presentReport(manifest);
}
