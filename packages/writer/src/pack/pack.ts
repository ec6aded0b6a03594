import { readManifest } from '@shardtool/format';
import { type CheckedOptions, checkOptions, type PackOptions } from '../options.js';
import type { PartialField } from '../output/commit.js';
import { isDatasetOf } from '../output/committed-plan.js';
import { completePack, isCommitted } from '../output/complete-pack.js';
import { OutputFolder, type PackState } from '../output/output-folder.js';
import { type Part, parsePart } from '../output/parts.js';
import { readQuarantine } from '../output/quarantine.js';
import { findPlan, type PlanFacts, type PlanHeader } from '../plan/plan-record.js';
import { type PreparedPack, prepare } from '../plan/prepare.js';
import type { ProgressTicker } from '../progress.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import { checkOtherIndexes } from '../shard/other-indexes.js';
import { checkSource } from '../source/scan.js';
import { withProgress } from '../with-progress.js';
import { settleAppend } from './append.js';
import { commitWhenComplete } from './commit-parts.js';
import { begin, goOn, type PackWork, packShards, prepareAll } from './pack-run.js';
import type { PackedShard } from './pack-worker.js';
import { createPackWorkers, type PackWorkers } from './pack-workers.js';
import { recordedOptions } from './recorded-options.js';
import { checkPlannedOptions, sharedPlan } from './shared-plan.js';

/** What a pack made, or with `dryRun` would make. Of a part: what it made itself. */
export interface PackReport {
  /** Files that were packed, the ones beside images included. */
  readonly files: number;
  readonly samples: number;
  readonly shards: number;
  /** Size of all shards in bytes; 0 after a dry run. */
  readonly bytes: number;
  /** Size of all files of the plan in bytes. */
  readonly sourceBytes: number;
  /** Names of the classes in the order of their numbers. */
  readonly classes: readonly string[];
  /** Files that belong to no image, or to one that no row of the labels names. */
  readonly skippedFiles: number;
  /** Folders that were left out because another path leads to them too. */
  readonly skippedFolders: readonly string[];
  /** Folders that were left out for the dot in front of their names. torchvision's ImageFolder takes their images. */
  readonly hiddenFolders: readonly string[];
  /** Images with the bytes of another one that stands for them; duplicates.jsonl lists them. */
  readonly duplicates: number;
  /** Duplicates whose class is another one than that of the image that stands for them. */
  readonly classConflicts: number;
  /** Images that could not be packed; quarantine.jsonl lists them. */
  readonly quarantined: number;
  /** Images of another kind than their name says; their field is named by the content. */
  readonly renamed: number;
  /** Images that were turned as their EXIF orientation says, when they were encoded anew. */
  readonly orientationBaked: number;
  /** Images that "check" decoded although something in them is odd. */
  readonly warnings: number;
  /** Images of kinds whose metadata "stripMetadata" cannot take out: TIFF and AVIF. */
  readonly metadataKept: number;
  /** Fields that not all samples have: some readers want the same fields in every sample. */
  readonly partialFields: readonly PartialField[];
  /** Shards that an earlier pack had finished. They count in everything else. */
  readonly keptShards: number;
  /** Shards that other parts have not finished yet. */
  readonly pendingShards: number;
  /** The dataset is whole: dataset.json is written, by this pack or by another part. */
  readonly isCommitted: boolean;
}

/**
 * Packs the images below the folder `source` into shards in the folder `output`, and commits them with dataset.json. The
 * same files, options and seed give the same bytes. A pack that did not end goes on where it was; with `part`, many
 * processes pack one dataset, and the one that completes it commits. Throws a {@link ShardtoolError} that says what is
 * wrong; without dataset.json the folder then says that its pack did not end.
 */
export async function pack(source: string, output: string, options: PackOptions = {}): Promise<PackReport> {
  const checked = checkOptions(options);
  const part = partOf(checked);
  checkSource(source);
  checkOtherIndexes(checked.format, checked.index);
  const layout = await layoutOfChoice(checked);
  checked.signal?.throwIfAborted();
  const run = async <T>(work: (workers: PackWorkers, ticker: ProgressTicker) => Promise<T>): Promise<T> => {
    const workers = createPackWorkers(checked.workers);
    return withProgress(workers, checked, (ticker) => work(workers, ticker));
  };
  if (checked.dryRun) {
    return run(async (workers, ticker) => {
      const prepared = await prepare({ source, output, options: checked, base: null, workers, ticker });
      prepared.close();
      return plannedReport(prepared);
    });
  }
  const folder = await OutputFolder.open(output, part, checked.signal);
  try {
    const state = checked.append ? null : folder.look(checked);
    if (part === null && state === 'dataset') folder.refuseDataset();
    return await run((workers, ticker) => {
      const work = { source, folder, layout, options: checked, part, base: null, workers, ticker };
      if (state === null) return packMore(work, options);
      return part === null ? packWhole(work, state) : packPart(work);
    });
  } finally {
    folder.release();
  }
}

/** One part of one is the whole. */
function partOf({ part: text }: CheckedOptions): Part | null {
  const part = text === undefined ? null : parsePart(text);
  return part?.count === 1 ? null : part;
}

async function packWhole(work: PackWork, state: PackState): Promise<PackReport> {
  const { folder, ticker } = work;
  const header = state === 'plan' ? await goOn(work) : await begin(work);
  const shards = await packShards(work, header, false);
  ticker.begin('commit', header.files, header.sourceBytes);
  shards.sort((a, b) => a.shard - b.shard);
  const partialFields = await completePack(folder.path, header, shards);
  return { ...writtenReport(header, shards), partialFields, isCommitted: true };
}

async function packPart(work: PackWork): Promise<PackReport> {
  const { folder, options, ticker } = work;
  const output = folder.path;
  const found = await sharedPlan(output, () => begin(work), options.signal);
  if (found === null) return committedReport(work, await prepareAll(work));
  const { header, isMine } = found;
  if (!isMine) checkPlannedOptions(output, header, await recordedOptions(options));
  try {
    const shards = await packShards(work, header, !isMine);
    ticker.begin('commit', header.files, header.sourceBytes);
    const { pendingShards, partialFields } = await commitWhenComplete(output, header, options);
    return { ...writtenReport(header, shards), partialFields, pendingShards, isCommitted: pendingShards === 0 };
  } catch (error) {
    // A part that is run again while others end may find the plan gone, since all is done.
    if (!isCommitted(output) || findPlan(output) !== null) throw error;
    return { ...NOTHING, ...factsReport(header), isCommitted: true };
  }
}

/** Adds to the dataset in the folder what it does not have yet. */
async function packMore(work: PackWork, given: PackOptions): Promise<PackReport> {
  const { folder, ticker } = work;
  const output = folder.path;
  const manifest = await readManifest(output);
  const options = settleAppend(output, manifest, folder.notedIndexes(), given);
  checkOtherIndexes(options.format, options.index);
  const layout = await layoutOfChoice(options);
  if (options.restart) folder.clearAdded(layout, manifest.shards);
  else folder.look(options);
  const earlier = findPlan(output);
  // What a pack that did not end has put there comes anew.
  const quarantined = readQuarantine(output).slice(0, earlier?.base?.quarantined);
  const base = { folder: output, manifest, quarantined };
  const growing = { ...work, options, layout, base };
  const header = earlier === null ? await begin(growing) : await goOn(growing);
  const shards = await packShards(growing, header, false);
  ticker.begin('commit', header.files, header.sourceBytes);
  shards.sort((a, b) => a.shard - b.shard);
  const partialFields = await completePack(output, header, shards, base);
  return { ...writtenReport(header, shards), partialFields, isCommitted: true };
}

/** Throws OutputNotEmptyError unless the dataset in the folder is what this part was to help with. */
async function committedReport({ folder, layout, options }: PackWork, prepared: PreparedPack): Promise<PackReport> {
  try {
    if (!(await isDatasetOf(folder.path, layout, options.name, prepared))) folder.refuseDataset();
  } finally {
    prepared.close();
  }
  return { ...NOTHING, ...factsReport(prepared.facts), isCommitted: true };
}

const NOTHING = {
  ...{ files: 0, samples: 0, shards: 0, bytes: 0, sourceBytes: 0, quarantined: 0, renamed: 0, orientationBaked: 0 },
  ...{ duplicates: 0, classConflicts: 0, warnings: 0, metadataKept: 0 },
  ...{ partialFields: [], keptShards: 0, pendingShards: 0, isCommitted: false },
};

function factsReport(facts: PlanFacts) {
  const { classes, skippedFiles, skippedFolders, hiddenFolders, duplicates, classConflicts } = facts;
  return { classes, skippedFiles, skippedFolders, hiddenFolders, duplicates, classConflicts };
}

function plannedReport({ facts, shardCount }: PreparedPack): PackReport {
  const { files, samples, sourceBytes } = facts;
  return { ...NOTHING, ...factsReport(facts), files, samples, shards: shardCount, sourceBytes };
}

function writtenReport(header: PlanHeader, shards: readonly PackedShard[]): PackReport {
  const total = (count: (shard: PackedShard) => number) => shards.reduce((sum, shard) => sum + count(shard), 0);
  return {
    ...NOTHING,
    ...factsReport(header),
    files: total(({ files }) => files),
    samples: total(({ samples }) => samples),
    shards: shards.length,
    bytes: total(({ bytes }) => bytes),
    sourceBytes: total(({ shard }) => header.shards[shard]!.sourceBytes),
    quarantined: total(({ quarantined }) => quarantined.length),
    renamed: total(({ renamed }) => renamed),
    orientationBaked: total(({ orientationBaked }) => orientationBaked),
    warnings: total(({ warnings }) => warnings),
    metadataKept: total(({ metadataKept }) => metadataKept),
    keptShards: shards.filter(({ isKept }) => isKept).length,
  };
}
