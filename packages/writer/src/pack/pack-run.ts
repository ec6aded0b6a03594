import type { WrittenLayout } from '@shardtool/format';
import { imageStepOptions, recodeOptions } from '../options.js';
import { stemsOf } from '../output/complete-pack.js';
import type { OutputFolder } from '../output/output-folder.js';
import { planPath } from '../output/pack-state.js';
import { isTurnOf, type Part } from '../output/parts.js';
import { checkBadShare, type QuarantinedFile } from '../output/quarantine.js';
import { type PlanHeader, type PlanPlace, readPlanHeader } from '../plan/plan-record.js';
import { type PreparedPack, planSurvey, prepare } from '../plan/prepare.js';
import { type PrepareWork, rootOf, surveySource } from '../source/survey.js';
import type { PackedShard } from './pack-worker.js';
import { writeShards } from './pack-workers.js';
import { recordedOptions } from './recorded-options.js';
import { checkPlan, checkPlannedOptions, publishPlan } from './shared-plan.js';

/** What a pack works with. */
export interface PackWork extends Omit<PrepareWork, 'output'> {
  readonly folder: OutputFolder;
  readonly layout: WrittenLayout;
  readonly part: Part | null;
}

export function prepareAll(work: PackWork): Promise<PreparedPack> {
  return prepare({ ...work, output: work.folder.path });
}

/** Plans, and makes the folder ready for the shards. */
export async function begin(work: PackWork): Promise<PlanHeader> {
  const { folder, layout, options, base } = work;
  const prepared = await prepareAll(work);
  try {
    if (base === null) await folder.clear();
    // How large an image will be when it is encoded anew is not known.
    if (recodeOptions(options) === null) folder.checkRoom(prepared.facts.shardBytes);
    const header = await publishPlan(folder, layout, prepared);
    await prepared.duplicates?.write(folder.path);
    return header;
  } finally {
    prepared.close();
  }
}

/** Looks whether the plan that lies in the folder is still that of the source: where anything is new, by planning again. */
export async function goOn(work: PackWork): Promise<PlanHeader> {
  const { path } = work.folder;
  const header = readPlanHeader(planPath(path));
  checkPlannedOptions(path, header, await recordedOptions(work.options, work.base));
  const again = { ...work, output: path };
  const survey = await surveySource(again);
  if (survey.digest !== null && survey.digest === header.sourceDigest) {
    survey.files.close();
    return header;
  }
  const prepared = await planSurvey(again, survey);
  try {
    checkPlan(path, header, prepared);
    await prepared.duplicates?.write(path);
    return header;
  } finally {
    prepared.close();
  }
}

/** Writes the shards whose turn it is, or keeps those that are finished. */
export async function packShards(work: PackWork, header: PlanHeader, checkTimes: boolean): Promise<PackedShard[]> {
  const { source, folder, layout, options, part, workers, ticker } = work;
  const { format, lmdbValues, index: otherIndexes, onBad, fields, maxBad, maxPixels, minSize, recheck } = options;
  const stems = stemsOf(header);
  const mine = header.shards
    .map((place, shard) => ({ shard, stem: stems[shard]!, place }))
    .filter(({ shard }) => part === null || isTurnOf(part, shard));
  const total = (count: (place: PlanPlace) => number) => mine.reduce((sum, { place }) => sum + count(place), 0);
  ticker.begin(
    'pack',
    total(({ files }) => files),
    total(({ sourceBytes }) => sourceBytes),
  );
  const packed: PackedShard[] = [];
  try {
    const columnTypes = new Map(header.columns.map((column) => [column.name, column.type]));
    const target = { output: folder.path, layout: { format, lmdbValues }, columnTypes, otherIndexes, fields };
    const images = { step: imageStepOptions(options), limits: { maxPixels, minSize } };
    const facts = { root: rootOf(source), onBad, ...images, checkTimes, digest: header.digest };
    await writeShards(workers, { ...target, ...facts, recheck, isPart: part !== null }, mine, (shard) => {
      packed.push(shard);
      checkBadShare(quarantinedIn(packed), header.samples, maxBad);
    });
    return packed;
  } catch (error) {
    await workers.close();
    folder.removeTemporaryFiles(
      layout,
      mine.map(({ stem }) => stem),
    );
    throw error;
  }
}

function quarantinedIn(shards: readonly PackedShard[]): readonly QuarantinedFile[] {
  return shards.flatMap(({ quarantined }) => quarantined);
}
