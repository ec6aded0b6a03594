import { existsSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OptionError } from '@shardtool/base';
import { type ColumnType, type ColumnValue, checkLabelColumns, columnTypeOf } from '@shardtool/format';
import { shownLocation } from '@shardtool/storage';
import type { CheckedOptions } from '../options.js';
import { STATE_FOLDER } from '../output/pack-state.js';
import { checkClasses } from '../plan/classes.js';
import type { FileLabels } from '../plan/shard-plan.js';
import type { ProgressTicker } from '../progress.js';
import type { InFlight } from '../source/ahead/in-flight.js';
import { hasObjects, OBJECT_COUNTS } from '../source/bucket/objects.js';
import type { Scan } from '../source/folder/scan.js';
import { readCoco } from '../source/labels/coco.js';
import { type Labels, readLabels, rowsOfFiles } from '../source/labels/labels.js';
import { listFiles, readLines } from '../source/labels/list.js';
import { readYolo, readYoloClasses, type YoloClasses } from '../source/labels/yolo.js';
import { digestOfSource } from '../source/source-digest.js';
import { rootOf, sourceKind } from '../source/source-kinds.js';
import { type AppendBase, appendColumnTypes, checkAppendedClasses, markPacked } from './append.js';
import { measureFiles, type PackWorkers, shareFiles } from './workers/pack-workers.js';

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

/** The types of the columns that YOLO's label files make. */
const YOLO_COLUMNS: ReadonlyMap<string, readonly ColumnValue[]> = new Map([[OBJECT_COUNTS, [0]]]);

/** Finds the files of the source, measures them, and reads what else is given. Throws where it is not as it should be. */
export async function surveySource(work: PrepareWork): Promise<Survey> {
  const { source, output, options, base, workers, ticker, flight } = work;
  const root = rootOf(source);
  const given = await tableOf(options, root);
  const yolo = await yoloOf(options);
  if (options.requireLabels && given === null) {
    const message =
      'The option "requireLabels" needs a table of labels to look the images up in; give "labels" or "coco", too.';
    throw new OptionError({}, message);
  }
  const classes = yolo?.names ?? (hasObjects(given) ? given.classes : await readClasses(options));
  if (base !== null && classes !== null) checkAppendedClasses(base.manifest, classes);
  const columns = yolo === null ? given?.columns : YOLO_COLUMNS;
  const found = new Map([...(columns ?? [])].map(([name, values]) => [name, columnTypeOf(name, values)]));
  const columnTypes = base === null ? found : appendColumnTypes(base.manifest, found);
  checkLabelColumns(columnTypes.keys(), []);
  ticker.begin('scan');
  const scan = await findFiles(root, output, options, ticker, flight);
  const { files } = scan;
  try {
    const missingRows: number[] = [];
    const isError = options.onBad === 'stop' && !options.allowMissingFiles;
    const onMissing = isError ? undefined : (row: number) => missingRows.push(row);
    const read = yolo && (await readYolo(yolo, root, files, flight, options.storage));
    const table = read?.labels ?? given;
    const labels = table && { table, rowOfFile: rowsOfFiles(files, table, onMissing), own: read?.own };
    const packed = base && (await markPacked(base, files));
    ticker.begin('measure', files.count);
    const place = { root, storage: options.storage };
    if (scan.isMeasured) shareFiles(workers, place, files, flight);
    else await measureFiles(workers, place, files, flight);
    const digest = digestOfSource(root, files, classes, read === null ? [] : textsOf(read.labels));
    return { ...scan, root, classes, labels, missingRows, columnTypes, packed, digest };
  } catch (error) {
    files.close();
    throw error;
  }
}

/** A table of labels, or COCO's annotations: what is known of the images before they are looked for. */
async function tableOf({ labels, coco, yolo, classes, storage }: CheckedOptions, root: string): Promise<Labels | null> {
  const name = coco === undefined ? 'yolo' : 'coco';
  if (coco === undefined && yolo === undefined) return labels === undefined ? null : readLabels(labels, root, storage);
  const others = { labels, classes, yolo: coco === undefined ? undefined : yolo };
  const [other] = Object.entries(others).find(([, given]) => given !== undefined) ?? [];
  if (other !== undefined) {
    const has = name === 'coco' ? "A file of COCO's annotations has" : "YOLO's label files have";
    throw new OptionError({}, `${has} the classes and labels: leave out ${other}, or ${name}.`);
  }
  return coco === undefined ? null : readCoco(coco, root, storage);
}

async function yoloOf({ yolo, storage }: CheckedOptions): Promise<YoloClasses | null> {
  if (yolo === undefined) return null;
  const classes = await readYoloClasses(yolo, storage);
  checkClasses(classes.names, classes.location);
  return classes;
}

function* textsOf({ texts = new Map() }: Labels): Generator<string> {
  for (const list of texts.values()) yield* list;
}

async function readClasses({ classes, storage }: CheckedOptions): Promise<readonly string[] | null> {
  if (classes === undefined) return null;
  return typeof classes === 'string'
    ? checkClasses(await readLines(classes, storage), shownLocation(classes))
    : checkClasses(classes);
}

async function findFiles(
  root: string,
  output: string,
  options: CheckedOptions,
  ticker: ProgressTicker,
  flight: InFlight | null,
): Promise<Scan> {
  const { include, exclude, signal, onBad } = options;
  // A dry run makes nothing, and so no output folder.
  const place = { memoryBytes: options.planMemory, folder: options.dryRun ? tmpdir() : join(output, STATE_FOLDER) };
  if (options.files !== undefined) {
    return {
      files: await listFiles(root, options.files, place, options.storage),
      isMeasured: false,
      repeatedFolders: [],
      hiddenFolders: [],
      topFolders: [],
      refused: [],
    };
  }
  const onFound = (files: number) => ticker.found(files);
  // Where the shards lie below the source, they are none of its files.
  const apart = existsSync(output) ? realpathSync.native(output) : undefined;
  return await sourceKind(root).scan(root, {
    include,
    exclude,
    place,
    onBad,
    signal,
    storage: options.storage,
    onFound,
    apart,
    flight: flight ?? undefined,
  });
}
