import { existsSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ColumnType, checkLabelColumns, columnTypeOf, OptionError } from '@shardtool/format';
import type { CheckedOptions } from '../options.js';
import { STATE_FOLDER } from '../output/pack-state.js';
import { checkClasses } from '../plan/classes.js';
import type { FileLabels } from '../plan/shard-plan.js';
import type { ProgressTicker } from '../progress.js';
import { type CocoLabels, readCoco } from '../source/coco.js';
import type { InFlight } from '../source/in-flight.js';
import { type Labels, readLabels, rowsOfFiles } from '../source/labels.js';
import { listFiles, readLines } from '../source/list.js';
import type { Scan } from '../source/scan.js';
import { digestOfSource } from '../source/source-digest.js';
import { rootOf, sourceKind } from '../source/source-kinds.js';
import { type AppendBase, appendColumnTypes, checkAppendedClasses, markPacked } from './append.js';
import { measureFiles, type PackWorkers, shareFiles } from './pack-workers.js';

/** What a pack is prepared with. */
export interface PrepareWork {
  readonly source: string;
  readonly output: string;
  readonly options: CheckedOptions;
  /** The dataset that is added to. */
  readonly base: AppendBase | null;
  readonly workers: PackWorkers;
  readonly ticker: ProgressTicker;
  /** Calls to the source, many at a time; null where it is read by the workers, one file after the other each. */
  readonly flight: InFlight | null;
}

/** All that a plan is made from. Whoever gets it closes its files. */
export interface Survey extends Scan {
  /** The source folder, with a "/" at its end. */
  readonly root: string;
  /** The list of classes that was given. */
  readonly classes: readonly string[] | null;
  readonly labels: FileLabels | null;
  /** Rows of the labels whose files are not there. */
  readonly missingRows: readonly number[];
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  /** Of a dataset that grows: 1 for each file that it has. */
  readonly packed: Uint8Array | null;
  /** Equal where the recorded options and this make the same plan: see {@link digestOfSource}. */
  readonly digest: string;
}

/** Finds the files of the source, measures them, and reads what else is given. Throws where it is not as it should be. */
export async function surveySource(work: PrepareWork): Promise<Survey> {
  const { source, output, options, base, workers, ticker, flight } = work;
  const root = rootOf(source);
  const table = tableOf(options, root);
  const classes = table !== null && 'classes' in table ? table.classes : readClasses(options.classes);
  if (base !== null && classes !== null) checkAppendedClasses(base.manifest, classes);
  const found = new Map([...(table?.columns ?? [])].map(([name, values]) => [name, columnTypeOf(name, values)]));
  const columnTypes = base === null ? found : appendColumnTypes(base.manifest, found);
  checkLabelColumns(columnTypes.keys(), []);
  ticker.begin('scan');
  const scan = await findFiles(root, output, options, ticker, flight);
  const { files } = scan;
  try {
    const missingRows: number[] = [];
    const onMissing = options.onBad === 'stop' ? undefined : (row: number) => missingRows.push(row);
    const labels = table && { table, rowOfFile: rowsOfFiles(files, table, onMissing) };
    const packed = base && (await markPacked(base, files));
    ticker.begin('measure', files.count);
    if (scan.isMeasured) shareFiles(workers, root, files, flight);
    else await measureFiles(workers, root, files, flight);
    const digest = digestOfSource(root, files, classes);
    return { ...scan, root, classes, labels, missingRows, columnTypes, packed, digest };
  } catch (error) {
    files.close();
    throw error;
  }
}

/** What is known of the images beside their paths: a table of labels, or COCO's annotations. */
function tableOf({ labels, coco, classes }: CheckedOptions, root: string): Labels | CocoLabels | null {
  if (coco === undefined) return labels === undefined ? null : readLabels(labels, root);
  if (labels === undefined && classes === undefined) return readCoco(coco, root);
  const other = labels === undefined ? 'classes' : 'labels';
  throw new OptionError({}, `A file of COCO's annotations has the classes and labels: leave out ${other}, or coco.`);
}

function readClasses(classes: string | readonly string[] | undefined): readonly string[] | null {
  if (classes === undefined) return null;
  return typeof classes === 'string' ? checkClasses(readLines(classes), classes) : checkClasses(classes);
}

async function findFiles(
  root: string,
  output: string,
  options: CheckedOptions,
  ticker: ProgressTicker,
  flight: InFlight | null,
): Promise<Scan> {
  const { include, exclude, signal } = options;
  // A dry run makes nothing, and so no output folder.
  const place = { memoryBytes: options.planMemory, folder: options.dryRun ? tmpdir() : join(output, STATE_FOLDER) };
  if (options.files !== undefined) {
    return { files: listFiles(root, options.files, place), isMeasured: false, repeatedFolders: [], hiddenFolders: [] };
  }
  const onFound = (files: number) => ticker.found(files);
  // Where the shards lie below the source, they are none of its files.
  const apart = existsSync(output) ? realpathSync.native(output) : undefined;
  return await sourceKind(root).scan(root, {
    include,
    exclude,
    place,
    signal,
    onFound,
    apart,
    flight: flight ?? undefined,
  });
}
