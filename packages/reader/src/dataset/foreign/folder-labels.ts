import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { FileError, LabelsError, reasonOf } from '@shardtool/base';
import {
  type ColumnValue,
  type LabelTable,
  type ListedSamples,
  labelOfColumn,
  readLabelTable,
} from '@shardtool/format';

/**
 * Names of the files with metadata of images in the same folder, as in the `datasets` library of Hugging Face
 * ("ImageFolder").
 */
const NAMES = ['metadata.jsonl', 'metadata.csv'];
const FILE_NAME = 'file_name';
/** Columns that contain the class, the preferred one first. `class` is not kept as a separate column. */
const CLASS_COLUMN = 'label';

/** Labels from such files for the samples of a folder, in the order of the samples. */
export interface FolderLabels {
  /** Class names or class numbers by sample, or null if no file has a class column. */
  readonly cls: readonly (string | number | null)[] | null;
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
}

/**
 * Reads `metadata.jsonl` or `metadata.csv` of a folder and some folders below it. Each row names a file by `file_name`,
 * relative to the folder of the metadata file. The column `class` or `label` is the class. Returns null if there is no
 * such file. Throws {@link LabelsError} for a row whose file is not among the samples, or that another row names as
 * well.
 */
export async function readFolderLabels(
  location: string,
  below: readonly string[],
  listed: ListedSamples,
): Promise<FolderLabels | null> {
  const samples = listed.keys.length;
  const sampleOf = new Map<string, number>();
  for (let sample = 0; sample < samples; sample++) {
    for (let file = listed.first[sample]!; file < listed.first[sample + 1]!; file++)
      sampleOf.set(listed.paths[file]!, sample);
  }
  const columns = new Map<string, ColumnValue[]>();
  const classes: (string | null)[] = new Array(samples).fill(null);
  const seen = new Uint8Array(samples);
  let found = false;
  let hasClasses = false;
  for (const folder of ['', ...below.map((name) => `${name}/`)]) {
    const table = await readTable(location, folder);
    if (table === null) continue;
    found = true;
    hasClasses ||= table.cls !== null;
    for (const [row, file] of table.id.entries()) {
      const sample = sampleOf.get(path.posix.normalize(`${folder}${file}`));
      const at = `${table.location}:${table.line[row]}`;
      if (sample === undefined)
        throw new LabelsError(
          { path: table.location, line: table.line[row] },
          `${at} names ${file}, which does not exist; remove the row, or fetch the file.`,
        );
      if (seen[sample] === 1)
        throw new LabelsError(
          { path: table.location, line: table.line[row] },
          `${at} names ${file} again; remove one of the rows.`,
        );
      seen[sample] = 1;
      classes[sample] = table.cls?.[row] || null;
      for (const [name, values] of table.columns) {
        const column = labelOfColumn(name);
        const all = columns.get(column) ?? new Array<ColumnValue>(samples).fill(null);
        columns.set(column, all);
        all[sample] = values[row] ?? null;
      }
    }
  }
  if (!found) return null;
  if (hasClasses) return { cls: classes, columns };
  const labels = columns.get(CLASS_COLUMN);
  const isClass = labels?.every((value) => value === null || typeof value === 'string' || isNumber(value)) ?? false;
  if (!isClass) return { cls: null, columns };
  columns.delete(CLASS_COLUMN);
  return { cls: labels as (string | number | null)[], columns };
}

function isNumber(value: ColumnValue): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0x7fffffff;
}

async function readTable(
  root: string,
  folder: string,
): Promise<(LabelTable<typeof FILE_NAME> & { location: string }) | null> {
  for (const name of NAMES) {
    const location = path.join(root, folder, name);
    const text = await readFile(location, 'utf8').catch((cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOENT') return null;
      throw new FileError({ path: location }, `${location} cannot be read: ${reasonOf(cause)}.`, { cause });
    });
    if (text === null) continue;
    const lines = text.replace(/^\ufeff/, '').split('\n');
    return { ...(await readLabelTable(location, [lines], [FILE_NAME])), location };
  }
  return null;
}
