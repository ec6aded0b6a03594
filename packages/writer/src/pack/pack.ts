import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkLocation, checkObject, OptionError, withMessages } from '@shardtool/base';
import { readManifest, sidecarPath } from '@shardtool/format';
import { isRemote, shownLocation } from '@shardtool/storage';
import { type CheckedOptions, checkOptions, type PackOptions } from '../options.js';
import { type Destination, folderDestination, namingPlace, openDestination } from '../output/destination.js';
import { listBeforePack } from '../output/lists.js';
import { OutputFolder, type PackState } from '../output/output-folder.js';
import { isMadeFrom } from '../output/pack-note.js';
import { findPlan, isCommitted } from '../output/pack-state.js';
import { partOf } from '../output/parts.js';
import { readQuarantine } from '../output/quarantine.js';
import { checkShardsThere, isDatasetOf } from '../output/same-dataset.js';
import type { PlanHeader } from '../plan/plan-record.js';
import { endingOnProgressError, withProgress } from '../progress.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import { checkOtherIndexes } from '../shard/other-indexes.js';
import { flightSetting, InFlight } from '../source/ahead/in-flight.js';
import { mayHang } from '../source/folder/mount.js';
import { isSlow } from '../source/folder/probe.js';
import { findMetadata } from '../source/labels/metadata.js';
import { sourceKind } from '../source/source-kinds.js';
import { settleAppend } from './append.js';
import { commitWhenComplete, completePack } from './commit-plan.js';
import { makePlan, type PackWork, resumePlan } from './make-plan.js';
import { packSplits } from './pack-splits.js';
import { prepare } from './prepare.js';
import { announceFound, checkPlannedOptions, sharedPlan } from './publish-plan.js';
import { madeFrom, recordedOptions } from './recorded-options.js';
import {
  checkedReport,
  committedReport,
  type PackReport,
  plannedReport,
  presentReport,
  writtenReport,
} from './report.js';
import { type PrepareWork, surveySource } from './survey.js';
import { packApart } from './workers/pack-apart.js';
import { checkPlanned, packShards } from './workers/pack-shards.js';
import { PackWorkers } from './workers/pack-workers.js';

/**
 * Packs the images below the folder `source` into shards in the folder `output`, and writes dataset.json at the end.
 * The same files, options and seed give the same bytes. An interrupted pack is resumed by the same call. With `part`,
 * many processes pack one dataset, and the one that completes it commits. Throws a {@link ShardtoolError}. Without
 * dataset.json the folder is marked as unfinished.
 */
export async function pack(source: string, output: string, options: PackOptions = {}): Promise<PackReport> {
  checkLocation('pack', source);
  checkLocation('pack', output);
  checkObject('pack', options);
  return endingOnProgressError(options, (given) =>
    withMessages(() =>
      checkOptions(given).splits ? packSplits(source, output, given, packFrom) : packFrom(source, output, given),
    ),
  );
}

async function packFrom(source: string, output: string, options: PackOptions): Promise<PackReport> {
  const { inFlight, signal } = checkOptions(options);
  signal?.throwIfAborted();
  if (isRemote(source)) return packHere(source, output, options, true);
  const isAhead = mayHang(source) || (inFlight === undefined ? isSlow(source) : inFlight > 1);
  return isAhead ? packApart(source, output, options) : packHere(source, output, options, false);
}

/**
 * Packs in this process. With `isAhead` many files are read concurrently; otherwise each worker reads one file at a
 * time.
 */
export async function packHere(
  source: string,
  output: string,
  options: PackOptions,
  isAhead: boolean,
): Promise<PackReport> {
  const checked = checkOptions(options);
  // Requests to a bucket have their own timeouts.
  const timeoutMs = isRemote(source) ? Number.POSITIVE_INFINITY : checked.ioTimeout * 1000;
  const flight = isAhead ? new InFlight(flightSetting(checked.inFlight, timeoutMs, checked.workers + 1)) : null;
  try {
    await sourceKind(source).check(source, flight);
    const hasLabels = (options.labels ?? options.coco ?? options.yolo) !== undefined;
    const metadata = hasLabels ? null : await findMetadata(source, checked.exclude, flight);
    const labels = metadata === null ? {} : { labels: metadata };
    const given = { ...options, ...labels };
    const destination = await destinationOf(output, checked, isListing(options));
    try {
      const pack = () => packWith(source, destination, given, { ...checked, ...labels }, flight);
      return { ...(await namingPlace(destination, pack)), metadata };
    } finally {
      await destination.close();
    }
  } finally {
    flight?.close();
  }
}

async function destinationOf(output: string, checked: CheckedOptions, isListed: boolean): Promise<Destination> {
  if (!isRemote(output)) return openDestination(output, checked);
  if (checked.append) {
    const path = shownLocation(output);
    const message = `The option "append" needs a local folder, and ${path} is remote: append to a copy of the dataset, or pack the new files to another prefix.`;
    throw new OptionError({ path }, message);
  }
  // Nothing is written then, neither here nor in a bucket.
  const isNothing = checked.dryRun && !isListed;
  return isNothing ? folderDestination(join(tmpdir(), 'shardtool-plan')) : openDestination(output, checked);
}

async function packWith(
  source: string,
  destination: Destination,
  options: PackOptions,
  checked: CheckedOptions,
  flight: InFlight | null,
): Promise<PackReport> {
  const output = destination.folder;
  const part = partOf(checked.part);
  checkOtherIndexes(checked.format, checked.index);
  const layout = await layoutOfChoice(checked);
  checked.signal?.throwIfAborted();
  const folder = checked.dryRun && !isListing(options) ? null : await OutputFolder.open(output, part, checked.signal);
  try {
    if (folder !== null) await destination.fetch(checked.recheck);
    const found = checked.append ? null : folder?.look(checked);
    if (found === 'dataset') {
      folder?.removeLeftState();
      await destination.removeGone();
    }
    const workers = new PackWorkers(checked, destination.isElsewhere, flight !== null);
    return await withProgress(workers, checked, async (ticker) => {
      const given = { source, output, options: checked, base: null, workers, ticker, flight };
      if (folder === null) return planOnly(given);
      const work = { ...given, folder, destination, layout, part };
      if (isListing(options)) return listOnly({ ...work, options: { ...checked, onBad: 'quarantine' } }, found);
      if (checked.append) return packMore(work, options);
      if (found === 'dataset' && part === null) return checkMade(work);
      return part === null ? packWhole(work, found === 'plan') : packPart(work);
    });
  } finally {
    folder?.release();
  }
}

/** A dry run writes nothing, unless it was asked to check the files: then it writes lists of what it found. */
function isListing({ dryRun, check }: PackOptions): boolean {
  return dryRun === true && check !== undefined;
}

async function planOnly(work: PrepareWork): Promise<PackReport> {
  const prepared = await prepare(work);
  prepared.close();
  return plannedReport(prepared);
}

/** Checks every file as a pack would, and lists what would be skipped. */
async function listOnly(work: PackWork, found: PackState | null | undefined): Promise<PackReport> {
  const { folder, output, destination, options } = work;
  if (found !== 'nothing') folder.refuseDataset();
  const prepared = await prepare(work);
  try {
    const checked = await checkPlanned(work, prepared);
    const bad = [...(prepared.facts.quarantined ?? []), ...checked.flatMap(({ quarantined }) => quarantined)];
    await listBeforePack(output, options.format, bad, prepared.skipped());
    await destination.sendNotes();
    return checkedReport(prepared, checked);
  } finally {
    prepared.close();
  }
}

async function packWhole(work: PackWork, isBegun: boolean): Promise<PackReport> {
  return packAndCommit(work, isBegun ? await resumePlan(work) : await makePlan(work));
}

/** Adds to the dataset in the folder what it does not have yet. */
async function packMore(work: PackWork, given: PackOptions): Promise<PackReport> {
  const { folder, output } = work;
  const manifest = await readManifest(output);
  const { options, kept } = settleAppend(output, manifest, folder.noted(), given);
  checkOtherIndexes(options.format, options.index);
  const layout = await layoutOfChoice(options);
  if (options.restart) folder.clearAdded(layout, manifest.shards);
  else if (folder.look(options) === 'dataset') folder.removeLeftState();
  const earlier = findPlan(output);
  // Entries of an earlier pack that did not end are written again.
  const quarantined = readQuarantine(output).slice(0, earlier?.base?.quarantined);
  const growing = { ...work, options, layout, base: { folder: output, manifest, quarantined } };
  const header = earlier === null ? await makePlan(growing) : await resumePlan(growing);
  return { ...(await packAndCommit(growing, header)), keptOptions: kept };
}

async function packAndCommit(work: PackWork, header: PlanHeader): Promise<PackReport> {
  const shards = await packShards(work, header, false);
  work.ticker.begin('commit', header.files, header.sourceBytes);
  shards.sort((a, b) => a.shard - b.shard);
  await work.destination.whenSent();
  const completed = await completePack(work.output, work.folder.lock, header, shards, work.base);
  await work.destination.commit();
  return { ...writtenReport(header, shards), ...completed, isCommitted: true };
}

async function packPart(work: PackWork): Promise<PackReport> {
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

/** Throws OutputNotEmptyError unless the dataset in the folder is the result of this source and these options. */
async function checkMade(work: PackWork): Promise<PackReport> {
  const { folder, output, destination, options } = work;
  const survey = await surveySource(work);
  survey.files.close();
  const digest = madeFrom({ options: await recordedOptions(options), sourceDigest: survey.digest });
  if (!isMadeFrom(output, digest!)) folder.refuseDataset(!destination.isElsewhere);
  const manifest = await readManifest(output);
  checkShardsThere(output, manifest);
  return presentReport(manifest);
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
