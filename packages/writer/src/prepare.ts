import { resolve } from 'node:path';
import { type ColumnType, type ColumnValue, checkLabelColumns, columnTypeOf } from '@shardtool/format';
import { checkClasses } from './classes.js';
import { NoImagesError } from './errors.js';
import { type FileTable, pathAt } from './file-table.js';
import { type Labels, readLabels, rowsOfFiles } from './labels.js';
import { listFiles, readLines } from './list.js';
import type { CheckedOptions } from './options.js';
import { measureFiles, type PackWorkers } from './pack-workers.js';
import { type PackPlan, planShards } from './plan.js';
import type { ProgressTicker } from './progress.js';
import { type Scan, scanFolder } from './scan.js';
import { badFile, type ShardJob } from './shard-job.js';
import { BadFile, readSourceFile } from './source-file.js';

/** Everything that is known before the first shard is written. */
export interface PreparedPack extends Scan {
  /** The source folder, with a "/" at its end. */
  readonly root: string;
  readonly plan: PackPlan;
  readonly labels: { readonly table: Labels; readonly rowOfFile: Int32Array } | null;
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
}

/** Finds, measures and plans what is to be packed. Throws where something of it is not as it should be. */
export async function prepare(
  source: string,
  options: CheckedOptions,
  workers: PackWorkers,
  ticker: ProgressTicker,
): Promise<PreparedPack> {
  const root = `${resolve(source)}/`;
  const classes = readClasses(options.classes);
  const table = options.labels === undefined ? null : readLabels(options.labels, root);
  const columnTypes = new Map([...(table?.columns ?? [])].map(([name, values]) => [name, columnTypeOf(name, values)]));
  checkLabelColumns(columnTypes.keys(), []);
  ticker.begin('scan');
  const scan = await findFiles(root, options, ticker);
  const labels = table && { table, rowOfFile: rowsOfFiles(scan.files, table) };
  ticker.begin('measure', scan.files.count);
  await measureFiles(workers, root, scan.files);
  const plan = planShards(scan.files, {
    ...options,
    classes,
    labels: labels && { rowOfFile: labels.rowOfFile, cls: labels.table.cls },
  });
  if (plan.samples === 0) refuseEmpty(source, scan.files.count);
  if (options.onBad === 'stop') refuseUnreadable(root, scan.files, plan);
  return { ...scan, root, plan, labels, columnTypes };
}

function readClasses(classes: string | readonly string[] | undefined): readonly string[] | null {
  if (classes === undefined) return null;
  return typeof classes === 'string' ? checkClasses(readLines(classes), classes) : checkClasses(classes);
}

async function findFiles(root: string, options: CheckedOptions, ticker: ProgressTicker): Promise<Scan> {
  if (options.files !== undefined) return { files: listFiles(root, options.files), repeatedFolders: [] };
  const { include, exclude, signal } = options;
  return await scanFolder(root, { include, exclude, signal, onFound: (files) => ticker.found(files) });
}

function refuseEmpty(source: string, files: number): never {
  const found = files === 0 ? 'no files' : `${files} files, but no image`;
  const message = `The source ${source} holds ${found} that is to be packed; check the path, the patterns and the labels.`;
  throw new NoImagesError({ path: source }, message);
}

/** A file that could not be measured ends the pack before it begins. */
function refuseUnreadable(root: string, files: FileTable, plan: PackPlan): void {
  const file = plan.files.find((candidate) => files.bytes[candidate] === -1);
  if (file === undefined) return;
  const path = pathAt(files, file);
  try {
    readSourceFile(root + path, new Uint8Array(0));
  } catch (error) {
    throw error instanceof BadFile ? badFile(error, path) : error;
  }
}

/** The jobs of all shards. */
export function* shardJobs({ plan, labels }: PreparedPack): Generator<ShardJob> {
  for (let shard = 0; shard < plan.shards; shard++) {
    const columns = new Map<string, ColumnValue[]>();
    for (const [name, values] of labels?.table.columns ?? []) {
      const column: ColumnValue[] = [];
      for (let sample = plan.shardStart[shard]!; sample < plan.shardStart[shard + 1]!; sample++) {
        column.push(values[labels!.rowOfFile[plan.files[plan.fileStart[sample]!]!]!]!);
      }
      columns.set(name, column);
    }
    yield { shard, columns };
  }
}
