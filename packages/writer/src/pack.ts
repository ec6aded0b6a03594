import type { ShardLayout } from '@shardtool/format';
import { commitDataset, type PartialField } from './commit.js';
import { layoutOfChoice } from './layout-choice.js';
import { type CheckedOptions, checkOptions, type PackOptions, recodeOptions } from './options.js';
import { checkOtherIndexes } from './other-indexes.js';
import { OutputFolder } from './output-folder.js';
import { createPackWorkers, type PackWorkers, writeShards } from './pack-workers.js';
import { type PreparedPack, prepare, shardJobs } from './prepare.js';
import type { ProgressTicker } from './progress.js';
import { checkBadShare, type QuarantinedFile, writeQuarantine } from './quarantine.js';
import { checkSource } from './scan.js';
import type { ShardResult } from './shard-job.js';
import { numberedStem } from './shard-paths.js';
import { withProgress } from './with-progress.js';

/** What a pack made, or with `dryRun` would make. */
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
  /** Images that could not be packed; quarantine.jsonl lists them. */
  readonly quarantined: number;
  /** Images of another kind than their name says; their field is named by the content. */
  readonly renamed: number;
  /** Images that were turned as their EXIF orientation says, when they were encoded anew. */
  readonly orientationBaked: number;
  /** Fields that not all samples have: some readers want the same fields in every sample. */
  readonly partialFields: readonly PartialField[];
}

/**
 * Packs the images below the folder `source` into shards in the folder `output`, and commits them with dataset.json. The
 * same files, options and seed give the same bytes. Throws a {@link ShardtoolError} that says what is wrong; without
 * dataset.json the folder then says that its pack did not end.
 */
export async function pack(source: string, output: string, options: PackOptions = {}): Promise<PackReport> {
  const checked = checkOptions(options);
  checkSource(source);
  checkOtherIndexes(checked.format, checked.index);
  const layout = await layoutOfChoice(checked);
  checked.signal?.throwIfAborted();
  const folder = checked.dryRun ? null : new OutputFolder(output);
  try {
    folder?.checkEmpty(checked.overwrite);
    const workers = createPackWorkers(checked.workers);
    return await withProgress(workers, checked, async (ticker) => {
      const job = await prepare(source, checked, workers, ticker);
      return folder === null ? plannedReport(job) : await writeAll(job, folder, layout, checked, workers, ticker);
    });
  } finally {
    folder?.release();
  }
}

async function writeAll(
  prepared: PreparedPack,
  folder: OutputFolder,
  layout: ShardLayout,
  options: CheckedOptions,
  workers: PackWorkers,
  ticker: ProgressTicker,
): Promise<PackReport> {
  const { plan, columnTypes } = prepared;
  const { format, lmdbValues, index: otherIndexes, name, onBad, fields, maxBad } = options;
  const recode = recodeOptions(options);
  await folder.clear();
  // How large an image will be when it is encoded anew is not known.
  if (recode === null) folder.checkRoom(plan.shardBytes);
  const stems = Array.from({ length: plan.shards }, (_, shard) => numberedStem(name, shard));
  await folder.announce(layout, stems, otherIndexes);
  ticker.begin('pack', plan.files.length, plan.sourceBytes);
  const results: ShardResult[] = [];
  try {
    const target = { output: folder.path, layout: { format, lmdbValues }, columnTypes, otherIndexes };
    const setting = { ...target, name, plan, onBad, recode, fields };
    await writeShards(workers, setting, shardJobs(prepared), (result) => {
      results.push(result);
      checkBadShare(quarantinedIn(results), plan.samples, maxBad);
    });
  } catch (error) {
    await workers.close();
    folder.removeTemporaryFiles(layout);
    throw error;
  }
  ticker.begin('commit', plan.files.length, plan.sourceBytes);
  results.sort((a, b) => a.shard - b.shard);
  await writeQuarantine(folder.path, quarantinedIn(results));
  const columns = [...columnTypes].map(([column, type]) => ({ name: column, type }));
  const facts = { format, classes: plan.classes, columns, otherIndexes };
  const partialFields = await commitDataset(folder.path, results, facts);
  return { ...plannedReport(prepared), ...writtenReport(results), partialFields };
}

function quarantinedIn(results: readonly ShardResult[]): readonly QuarantinedFile[] {
  return results.flatMap(({ quarantined }) => quarantined);
}

function plannedReport({ files, plan, repeatedFolders }: PreparedPack): PackReport {
  return {
    files: plan.files.length,
    samples: plan.samples,
    shards: plan.shards,
    bytes: 0,
    sourceBytes: plan.sourceBytes,
    classes: plan.classes,
    skippedFiles: files.count - plan.files.length,
    skippedFolders: repeatedFolders,
    quarantined: 0,
    renamed: 0,
    orientationBaked: 0,
    partialFields: [],
  };
}

function writtenReport(results: readonly ShardResult[]): Partial<PackReport> {
  const total = (count: (result: ShardResult) => number) => results.reduce((sum, result) => sum + count(result), 0);
  return {
    files: total(({ files }) => files),
    samples: total(({ samples }) => samples),
    bytes: total(({ bytes }) => bytes),
    quarantined: total(({ quarantined }) => quarantined.length),
    renamed: total(({ renamed }) => renamed),
    orientationBaked: total(({ orientationBaked }) => orientationBaked),
  };
}
