import { LabelsError } from '@shardtool/base';
import { type ColumnValue, type LabelTable, labelOfColumn, readLabelTable, readParquetLabels } from '@shardtool/format';
import { type StorageOptions, shownLocation } from '@shardtool/storage';
import { codePointOrderOf, compareCodePoints } from '../file-table.js';
import type { SourceFiles } from '../source-files.js';
import { pathBelow, readTextFile } from './list.js';

/** The column of the path in a `metadata.csv` or `metadata.jsonl`, as the hub of Hugging Face has them. */
export const FILE_NAME = 'file_name';
/** What such a table calls the class, where it has no column `class`. */
const LABEL = 'label';

/** What a labels file says, one row an image. */
export interface Labels {
  /** The labels file, for messages. */
  readonly location: string;
  /** Relative to the source. */
  readonly path: readonly string[];
  /** Line of each row, from 1. */
  readonly line: Uint32Array;
  /** Class of each row, '' for none; null where the file has no column "class". */
  readonly cls: readonly string[] | null;
  /** Further columns, for the index; each holds values of one type, and null. */
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
  /** Fields that the images get, by name: the text of each row. */
  readonly texts?: ReadonlyMap<string, readonly string[]>;
}

/**
 * Reads a labels file, on this machine or in a bucket: CSV with a header row, or JSON Lines. Its paths are relative to `source`, or absolute and below
 * it. Throws {@link LabelsError} with the line.
 */
export async function readLabels(location: string, source: string, storage?: StorageOptions): Promise<Labels> {
  const { id, line, cls, columns } = await tableOf(location, ['path', FILE_NAME], storage);
  const shown = shownLocation(location);
  const path = id.map((named, row) => pathBelow(source, named, `${shown}:${line[row]}`));
  return { location: shown, path, line, cls, columns };
}

/** Labels by key, or by path where the file has no column "key": {@link readLabels} for samples that are packed. */
export interface PackedLabels {
  readonly by: 'key' | 'path';
  readonly id: readonly string[];
  readonly cls: readonly string[] | null;
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
}

/** How a table in a bucket is asked for. */
export interface ReadLabelsOptions {
  readonly storage?: StorageOptions | undefined;
}

/**
 * Reads a labels file for samples that are packed already: CSV, JSON Lines, or Parquet of other software. Throws
 * {@link LabelsError} with the line.
 */
export async function readPackedLabels(location: string, { storage }: ReadLabelsOptions = {}): Promise<PackedLabels> {
  const named = ['key', 'path', FILE_NAME] as const;
  const isParquet = location.endsWith('.parquet');
  const { by, ...table } = isParquet
    ? await readParquetLabels(location, named, storage)
    : await tableOf(location, named, storage);
  if (new Set(table.id).size < table.id.length) refuseTwice(shownLocation(location), by, table);
  return { by: by === 'key' ? 'key' : 'path', ...table };
}

/** Which of the two rows would count, nobody could tell. */
function refuseTwice(location: string, by: string, { id, line }: Pick<LabelTable<string>, 'id' | 'line'>): never {
  const seen = new Map<string, number>();
  const row = id.findIndex((name, at) => seen.has(name) || !seen.set(name, at));
  const [first, second] = [seen.get(id[row]!)!, row].map((at) => line[at]!) as [number, number];
  const message = `${location}:${second} names the ${by} "${id[row]}" again; line ${first} does too. Remove one of them.`;
  throw new LabelsError({ path: location, line: second }, message);
}

async function tableOf<Name extends string>(
  location: string,
  named: readonly Name[],
  storage: StorageOptions | undefined,
): Promise<LabelTable<Name>> {
  const table = readLabelTable(shownLocation(location), await readTextFile(location, storage), named);
  if (table.by !== FILE_NAME) return table;
  const columns = new Map([...table.columns].map(([name, values]) => [labelOfColumn(name), values]));
  const labels = columns.get(LABEL);
  const isClass = table.cls === null && labels?.every((value) => value === null || isClassLabel(value));
  if (!isClass) return { ...table, columns };
  columns.delete(LABEL);
  return { ...table, cls: labels!.map((value) => String(value ?? '')), columns };
}

function isClassLabel(value: ColumnValue): boolean {
  return typeof value === 'string' || (Number.isInteger(value) && (value as number) >= 0);
}

/**
 * The row of each file, -1 for files that no row names. Throws {@link LabelsError} for two rows of one file, and for a row
 * whose file is not there, unless `onMissing` takes it.
 */
export function rowsOfFiles(files: SourceFiles, labels: Labels, onMissing?: (row: number) => void): Int32Array {
  const rowOfFile = new Int32Array(files.count).fill(-1);
  const byPath = Uint32Array.from(labels.path, (_, row) => row);
  const compare = codePointOrderOf(labels.path);
  byPath.sort((a, b) => compare(labels.path[a]!, labels.path[b]!) || a - b);
  const reader = files.reader();
  let file = 0;
  for (let i = 0; i < byPath.length; i++) {
    const row = byPath[i]!;
    const path = labels.path[row]!;
    if (i > 0 && labels.path[byPath[i - 1]!] === path) {
      fault(labels, row, `names ${path} again; it stands in line ${labels.line[byPath[i - 1]!]}, too`);
    }
    while (file < files.count && compareCodePoints(reader.path(file), path) < 0) file++;
    if (file < files.count && reader.path(file) === path) rowOfFile[file] = row;
    else if (onMissing !== undefined) onMissing(row);
    else {
      fault(
        labels,
        row,
        `names ${path}, which is not among the files of the source; correct it, allow rows without a file (--allow-missing-files), or have such rows listed in quarantine.jsonl: --on-bad quarantine`,
      );
    }
  }
  return rowOfFile;
}

/** Where a row stands, for messages. */
export function placeOfRow({ location, line }: Labels, row: number): string {
  // COCO's annotations have no lines.
  return line[row] === 0 ? location : `${location}:${line[row]}`;
}

function fault(labels: Labels, row: number, what: string): never {
  const { location, line } = labels;
  throw new LabelsError({ path: location, line: line[row]! }, `${placeOfRow(labels, row)} ${what}.`);
}
