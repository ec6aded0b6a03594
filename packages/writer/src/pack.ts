import { crc32Hex, createManifest, type LayoutName, layoutOf, type Manifest, writeManifest } from '@shardtool/format';
import { type CheckedOptions, checkOptions, type PackOptions, recodeOptions } from './options.js';
import { OutputFolder } from './output-folder.js';
import { PackWorkers } from './pack-workers.js';
import { type PreparedPack, prepare, shardJobs } from './prepare.js';
import { ProgressTicker } from './progress.js';
import { checkBadShare, type QuarantinedFile, writeQuarantine } from './quarantine.js';
import { checkSource } from './scan.js';
import { addTo, type ShardResult } from './shard-job.js';

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
}

/**
 * Packs the images below the folder `source` into shards in the folder `output`, and commits them with dataset.json. The
 * same files, options and seed give the same bytes. Throws a {@link ShardtoolError} that says what is wrong; without
 * dataset.json the folder then says that its pack did not end.
 */
export async function pack(source: string, output: string, options: PackOptions = {}): Promise<PackReport> {
  const checked = checkOptions(options);
  checkSource(source);
  checked.signal?.throwIfAborted();
  const folder = checked.dryRun ? null : new OutputFolder(output);
  try {
    folder?.checkEmpty(checked.overwrite);
    return await withWorkers(checked, async (workers, ticker) => {
      const job = await prepare(source, checked, workers, ticker);
      return folder === null ? plannedReport(job) : await writeAll(job, folder, checked, workers, ticker);
    });
  } finally {
    folder?.release();
  }
}

/** Runs `work` with worker threads that end with it, and earlier when the pack is aborted. */
async function withWorkers<T>(
  { workers: size, signal, onProgress }: CheckedOptions,
  work: (workers: PackWorkers, ticker: ProgressTicker) => Promise<T>,
): Promise<T> {
  const workers = new PackWorkers(size);
  const ticker = new ProgressTicker(onProgress, () => workers.done);
  const stop = () => workers.stop();
  signal?.addEventListener('abort', stop);
  try {
    return await work(workers, ticker);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
    ticker.close();
    await workers.close();
  }
}

async function writeAll(
  prepared: PreparedPack,
  folder: OutputFolder,
  options: CheckedOptions,
  workers: PackWorkers,
  ticker: ProgressTicker,
): Promise<PackReport> {
  const { plan, columnTypes } = prepared;
  const { format, name, onBad, fields, maxBad } = options;
  const recode = recodeOptions(options);
  const layout = await layoutOf(format);
  await folder.clear();
  // How large an image will be when it is encoded anew is not known.
  if (recode === null) folder.checkRoom(plan.shardBytes);
  await folder.announce(layout, name, plan.shards);
  ticker.begin('pack', plan.files.length, plan.sourceBytes);
  const results: ShardResult[] = [];
  try {
    const setting = { output: folder.path, name, plan, onBad, columnTypes, format, recode, fields };
    await workers.write(setting, shardJobs(prepared), (result) => {
      results.push(result);
      checkBadShare(quarantinedIn(results), plan.samples, maxBad);
    });
  } catch (error) {
    await workers.close();
    folder.removeTemporaryFiles(layout, name, plan.shards);
    throw error;
  }
  ticker.begin('commit', plan.files.length, plan.sourceBytes);
  results.sort((a, b) => a.shard - b.shard);
  await writeQuarantine(folder.path, quarantinedIn(results));
  await writeManifest(folder.path, manifestOf(results, format, prepared));
  return { ...plannedReport(prepared), ...writtenReport(results) };
}

function quarantinedIn(results: readonly ShardResult[]): readonly QuarantinedFile[] {
  return results.flatMap(({ quarantined }) => quarantined);
}

function manifestOf(
  results: readonly ShardResult[],
  format: LayoutName,
  { plan, columnTypes }: PreparedPack,
): Manifest {
  const classCounts = new Map<number, number>();
  const fieldCounts = new Map<string, number>();
  for (const result of results) {
    for (const [cls, samples] of result.classCounts) addTo(classCounts, cls, samples);
    for (const [field, samples] of result.fieldCounts) addTo(fieldCounts, field, samples);
  }
  return createManifest({
    format,
    classes: plan.classes.map((name, cls) => ({ name, samples: classCounts.get(cls) ?? 0 })),
    fields: [...fieldCounts.keys()].sort().map((name) => ({ name, samples: fieldCounts.get(name)! })),
    columns: [...columnTypes].map(([name, type]) => ({ name, type })),
    shards: results.map(({ file, bytes, samples, crc32, maxSampleBytes }) => {
      return { file, bytes, samples, crc32: crc32Hex(crc32), maxSampleBytes };
    }),
  });
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
