import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type ColumnType, checkLabelColumns, columnTypeOf } from '@shardtool/format';
import {
  type AppendBase,
  appendColumnTypes,
  checkAppendedClasses,
  checkNewKeys,
  markPacked,
  nextNumber,
} from './append.js';
import { checkClasses } from './classes.js';
import { type Duplicates, findDuplicates } from './dedupe/dedupe.js';
import { NoImagesError } from './errors.js';
import { type Labels, readLabels, rowsOfFiles } from './labels.js';
import { listFiles, readLines } from './list.js';
import { type CheckedOptions, changesBytes } from './options.js';
import { STATE_FOLDER } from './pack-state.js';
import { measureFiles, type PackWorkers } from './pack-workers.js';
import { type PackPlan, planShards } from './plan.js';
import type { BaseFacts, PlanFacts } from './plan-record.js';
import type { ProgressTicker } from './progress.js';
import { recordedOptions } from './recorded-options.js';
import { type Scan, scanFolder } from './scan.js';
import { badFile } from './shard-job.js';
import { type FileLabels, type ShardPlan, shardPlanOf } from './shard-plan.js';
import { digestOfSource } from './source-digest.js';
import { BadFile, readSourceFile } from './source-file.js';
import type { SourceFiles } from './source-files.js';

/** Everything that is known before the first shard is written. */
export interface PreparedPack {
  readonly facts: PlanFacts;
  readonly shardCount: number;
  /** The plans of all shards, each made when it is asked for. */
  readonly shards: () => Iterable<ShardPlan>;
  /** Null where duplicates are packed as everything else. */
  readonly duplicates: Duplicates | null;
  /** Gives up what lies beside the output folder. Whoever has this prepared calls it, and asks for no shard afterwards. */
  readonly close: () => void;
}

/**
 * Finds, measures and plans what is to be packed; of a dataset that grows, what it does not have yet. Throws where
 * something of it is not as it should be.
 */
export async function prepare(...given: PrepareArguments): Promise<PreparedPack> {
  return (await prepareUnlessKnown(null, ...given))!;
}

type PrepareArguments = [
  source: string,
  output: string,
  options: CheckedOptions,
  workers: PackWorkers,
  ticker: ProgressTicker,
  base?: AppendBase | null,
];

/** The same; null where the digest of the source is `known`, since the plan is then, too. */
export async function prepareUnlessKnown(
  known: string | null,
  ...[source, output, options, workers, ticker, base = null]: PrepareArguments
): Promise<PreparedPack | null> {
  const root = rootOf(source);
  const classes = readClasses(options.classes);
  const table = options.labels === undefined ? null : readLabels(options.labels, root);
  if (base !== null && classes !== null) checkAppendedClasses(base.manifest, classes);
  const found = new Map([...(table?.columns ?? [])].map(([name, values]) => [name, columnTypeOf(name, values)]));
  const columnTypes = base === null ? found : appendColumnTypes(base.manifest, found);
  checkLabelColumns(columnTypes.keys(), []);
  ticker.begin('scan');
  const scan = await findFiles(root, output, options, ticker);
  const given = { source, root, output, options, classes, table, columnTypes, base, known };
  return await planFound(given, scan, workers, ticker).catch((error) => {
    scan.files.close();
    throw error;
  });
}

/** What is known of a pack before its files are. */
interface GivenPack {
  readonly source: string;
  readonly root: string;
  readonly output: string;
  readonly options: CheckedOptions;
  readonly classes: readonly string[] | null;
  readonly table: Labels | null;
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  readonly base: AppendBase | null;
  readonly known: string | null;
}

async function planFound(
  { source, root, output, options, classes, table, columnTypes, base, known }: GivenPack,
  scan: Scan,
  workers: PackWorkers,
  ticker: ProgressTicker,
): Promise<PreparedPack | null> {
  const { files } = scan;
  const labels = table && { table, rowOfFile: rowsOfFiles(files, table) };
  const packed = base && (await markPacked(base, files));
  ticker.begin('measure', files.count);
  await measureFiles(workers, root, files);
  // Which images are duplicates is not known by sizes and times.
  const sourceDigest = options.dedupe ? null : digestOfSource(root, files, classes);
  if (sourceDigest !== null && sourceDigest === known) {
    files.close();
    return null;
  }
  const planOptions = {
    ...options,
    classes,
    labels: labels && { rowOfFile: labels.rowOfFile, cls: labels.table.cls },
    base: base && packed ? { classes: base.manifest.classes.map(({ name }) => name), packed } : undefined,
  };
  const whole = planShards(files, planOptions);
  if (whole.order.length === 0 && base === null) refuseEmpty(source, files.count);
  if (options.onBad === 'stop') refuseUnreadable(root, files, whole);
  const compared = changesBytes(options) ? null : base;
  const duplicates = options.dedupe ? await findDuplicates(files, whole, output, workers, ticker, compared) : null;
  const close = () => {
    duplicates?.close();
    files.close();
  };
  try {
    const plan = duplicates === null ? whole : planShards(files, { ...planOptions, leftOut: duplicates.leftOut });
    const shards = () => shardPlans(files, plan, labels);
    if (base !== null) await checkNewKeys(base, shards(), options.fields);
    const facts = {
      source: root,
      sourceDigest,
      options: await recordedOptions(options, base),
      ...factsOf(scan, plan, columnTypes, duplicates),
    };
    return {
      // Of a dataset that grows, most files are those that it has.
      facts: base === null ? facts : { ...facts, skippedFiles: 0, base: baseFacts(base, options.name) },
      shardCount: plan.shards,
      shards,
      duplicates,
      close,
    };
  } catch (error) {
    duplicates?.close();
    throw error;
  }
}

function baseFacts({ manifest, quarantined }: AppendBase, name: string): BaseFacts {
  return { identity: manifest.identity, quarantined: quarantined.length, firstShard: nextNumber(manifest, name) };
}

/** The absolute path of the source folder, with a "/" at its end. */
export function rootOf(source: string): string {
  return `${resolve(source)}/`;
}

function factsOf(
  { files, repeatedFolders, hiddenFolders }: Scan,
  plan: PackPlan,
  columnTypes: ReadonlyMap<string, ColumnType>,
  duplicates: Duplicates | null,
) {
  return {
    classes: plan.classes,
    columns: [...columnTypes].map(([name, type]) => ({ name, type })),
    samples: plan.order.length,
    files: plan.grouping.files.length,
    sourceBytes: plan.sourceBytes,
    shardBytes: plan.shardBytes,
    skippedFiles: files.count - plan.grouping.files.length,
    skippedFolders: repeatedFolders,
    hiddenFolders,
    duplicates: duplicates?.count ?? 0,
    classConflicts: duplicates?.classConflicts ?? 0,
  };
}

function* shardPlans(files: SourceFiles, plan: PackPlan, labels: FileLabels | null): Generator<ShardPlan> {
  for (let shard = 0; shard < plan.shards; shard++) yield shardPlanOf(files, plan, labels, shard);
}

function readClasses(classes: string | readonly string[] | undefined): readonly string[] | null {
  if (classes === undefined) return null;
  return typeof classes === 'string' ? checkClasses(readLines(classes), classes) : checkClasses(classes);
}

async function findFiles(root: string, output: string, options: CheckedOptions, ticker: ProgressTicker): Promise<Scan> {
  const { include, exclude, signal } = options;
  // A dry run makes nothing, and so no output folder.
  const place = { memoryBytes: options.planMemory, folder: options.dryRun ? tmpdir() : join(output, STATE_FOLDER) };
  if (options.files !== undefined) {
    return { files: listFiles(root, options.files, place), repeatedFolders: [], hiddenFolders: [] };
  }
  return await scanFolder(root, { include, exclude, place, signal, onFound: (files) => ticker.found(files) });
}

function refuseEmpty(source: string, files: number): never {
  const found = files === 0 ? 'no files' : `${files} files, but no image`;
  const message = `The source ${source} holds ${found} that is to be packed; check the path, the patterns and the labels.`;
  throw new NoImagesError({ path: source }, message);
}

/** A file that could not be measured ends the pack before it begins. */
function refuseUnreadable(root: string, files: SourceFiles, { grouping }: PackPlan): void {
  const reader = files.reader();
  const file = grouping.files.find((candidate) => reader.bytes(candidate) === -1);
  if (file === undefined) return;
  const path = reader.path(file);
  try {
    readSourceFile(root + path, new Uint8Array(0));
  } catch (error) {
    throw error instanceof BadFile ? badFile(error, path) : error;
  }
}
