import { existsSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OptionError, option, sentence } from '@shardtool/base';
import { type ColumnType, type ColumnValue, checkLabelColumns, columnTypeOf } from '@shardtool/format';
import { isRemote, shownLocation } from '@shardtool/storage';
import type { CheckedOptions } from '../../options.js';
import { STATE_FOLDER } from '../../output/pack-state.js';
import { checkClasses } from '../../plan/classes.js';
import { Naming } from '../../plan/naming.js';
import { checkNoProvenance, provenanceTypes } from '../../plan/provenance.js';
import type { FileLabels } from '../../plan/shard-plan.js';
import type { ProgressTicker } from '../../progress.js';
import type { Scan } from '../../source/folder/scan.js';
import { readCoco } from '../../source/labels/coco.js';
import { type Labels, readLabels, rowsOfFiles } from '../../source/labels/labels.js';
import { listFiles } from '../../source/labels/list.js';
import { hasObjects, OBJECT_COUNTS } from '../../source/labels/objects.js';
import { readYolo, readYoloClasses, type YoloClasses } from '../../source/labels/yolo.js';
import type { OpenSource } from '../../source/open-source.js';
import { digestOfSource } from '../../source/source-digest.js';
import { sourceKind } from '../../source/source-kinds.js';
import { readLines } from '../../source/text-file.js';
import { measureFiles, shareFiles } from '../workers/pack-workers.js';
import type { PrepareWork } from '../workers/work.js';
import { appendColumnTypes, checkAppendedClasses, findPacked, type PackedFiles } from './base-dataset.js';

/** Everything that a plan is made from. The caller must close its files. */
export interface Survey extends Scan {
  /** The given list of classes. */
  readonly classes: readonly string[] | null;
  readonly labels: FileLabels | null;
  /** Rows of the labels whose file is missing. */
  readonly missingRows: readonly number[];
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  /** Null unless a dataset grows. */
  readonly packed: PackedFiles | null;
  /** If this and the recorded options are equal, the plan is the same: see {@link digestOfSource}. */
  readonly digest: string;
}

/** Types of the columns made from YOLO label files. */
const YOLO_COLUMNS: ReadonlyMap<string, readonly ColumnValue[]> = new Map([[OBJECT_COUNTS, [0]]]);

/** Finds the files of the source, measures them, and reads the other inputs. Throws if any input is invalid. */
export async function surveySource(work: PrepareWork): Promise<Survey> {
  const { source, output, options, base, workers, ticker } = work;
  const { root, flight } = source;
  const given = await tableOf(options, root);
  const yolo = await yoloOf(options);
  if (options.requireLabels && given === null) {
    const message = sentence`The option ${option('requireLabels')} requires labels; also set ${option('labels')} or ${option('coco')}.`;
    throw new OptionError({}, message);
  }
  const classes = yolo?.names ?? (hasObjects(given) ? given.classes : await readClasses(options));
  if (base !== null && classes !== null) checkAppendedClasses(base.manifest, classes);
  const columns = yolo === null ? given?.columns : YOLO_COLUMNS;
  checkNoProvenance(options.provenance, new Set(columns?.keys()));
  const found = new Map([
    ...[...(columns ?? [])].map(([name, values]) => [name, columnTypeOf(name, values)] as const),
    ...provenanceTypes(options.provenance),
  ]);
  const columnTypes = base === null ? found : appendColumnTypes(base.manifest, found);
  checkLabelColumns(columnTypes.keys(), []);
  ticker.begin('scan');
  const scan = await findFiles(source, output, options, ticker);
  const { files } = scan;
  try {
    const missingRows: number[] = [];
    const isError = options.onBad === 'raise' && !options.allowMissingFiles;
    const onMissing = isError ? undefined : (row: number) => missingRows.push(row);
    const read = yolo && (await readYolo(yolo, root, files, flight, options.storage));
    const table = read?.labels ?? given;
    const labels = table && { table, rowOfFile: rowsOfFiles(files, table, onMissing), own: read?.own };
    const packed = base && (await findPacked(base, files, new Naming(options)));
    ticker.begin('measure', files.count);
    await (scan.isMeasured ? shareFiles(workers, source, files) : measureFiles(workers, source, files));
    const digest = digestOfSource(root, files, classes, read === null ? [] : textsOf(read.labels));
    return { ...scan, classes, labels, missingRows, columnTypes, packed, digest };
  } catch (error) {
    files.close();
    throw error;
  }
}

/** Reads the labels file or COCO annotations, before images are searched. */
async function tableOf({ labels, coco, yolo, classes, storage }: CheckedOptions, root: string): Promise<Labels | null> {
  const name = coco === undefined ? 'yolo' : 'coco';
  if (coco === undefined && yolo === undefined) return labels === undefined ? null : readLabels(labels, root, storage);
  const others = { labels, classes, yolo: coco === undefined ? undefined : yolo };
  const [other] = Object.entries(others).find(([, given]) => given !== undefined) ?? [];
  if (other !== undefined) {
    const has = name === 'coco' ? "A file of COCO's annotations has" : "YOLO's label files have";
    throw new OptionError({}, `${has} the classes and labels: remove either ${other} or ${name}.`);
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
  { root, storage, flight }: OpenSource,
  output: string,
  options: CheckedOptions,
  ticker: ProgressTicker,
): Promise<Scan> {
  const { include, exclude, signal, onBad } = options;
  // A dry run writes nothing, and so has no output folder.
  const place = { memoryBytes: options.planMemory, folder: options.dryRun ? tmpdir() : join(output, STATE_FOLDER) };
  if (options.files !== undefined) {
    if (options.manifest !== undefined) {
      throw new OptionError({}, sentence`Set either ${option('files')} or ${option('manifest')}.`);
    }
    return {
      files: await listFiles(root, options.files, place, storage),
      isMeasured: false,
      repeatedFolders: [],
      hiddenFolders: [],
      topFolders: [],
      refused: [],
    };
  }
  if (options.manifest !== undefined && !isRemote(root)) {
    const message = sentence`The option ${option('manifest')} lists the files of a bucket, but ${root} is a folder: use ${option('files')}.`;
    throw new OptionError({ path: root }, message);
  }
  const onFound = (files: number) => ticker.found(files);
  // If the output is below the source, shards are not source files.
  const apart = existsSync(output) ? realpathSync.native(output) : undefined;
  return await sourceKind(root).scan(root, {
    include,
    exclude,
    place,
    onBad,
    signal,
    storage,
    manifest: options.manifest,
    onFound,
    apart,
    flight: flight ?? undefined,
  });
}
