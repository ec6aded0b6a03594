import { statSync } from 'node:fs';
import {
  codePointOrderOf,
  compareCodePoints,
  LabelsError,
  option,
  optionName,
  type Sentence,
  sentence,
  TextRows,
} from '@shardtool/base';
import {
  type ColumnValue,
  isImageExtension,
  type LabelTable,
  labelOfColumn,
  readLabelRows,
  readLabelTable,
  readParquetLabelRows,
  readParquetLabels,
} from '@shardtool/format';
import type { LabelFile } from '@shardtool/reader';
import { isRemote, openSource, type StorageOptions, shownLocation } from '@shardtool/storage';
import type { SourceFiles } from '../source-files.js';
import { textLines } from '../text-file.js';
import { pathBelow } from './list.js';

/** Path column of a `metadata.csv` or `metadata.jsonl`, as on the Hugging Face Hub. */
export const FILE_NAME = 'file_name';
/**
 * Names of the path column, the least ambiguous first: those of shardtool, the Hub, TensorFlow's CSV files and Kaggle. Files
 * of Kaggle have identifiers without an extension.
 */
const PATH_NAMES = ['path', FILE_NAME, 'filename', 'image', 'image_id', 'id'] as const;
/** Class column of files of other software, if there is no column `class`. */
const LABEL = 'label';

/** Contents of a labels file, one row per image. */
export interface Labels {
  /** The labels file, for messages. */
  readonly location: string;
  /** Paths relative to the source. */
  readonly path: readonly string[];
  /** True if the paths have no extension, so that each means the image with that name. Default: false. */
  readonly areStems?: boolean;
  /** Line of each row, from 1. */
  readonly line: Uint32Array;
  /** Class of each row, '' for none; null if the file has no column "class". */
  readonly cls: readonly string[] | null;
  /** Further columns for the index. Each has values of one type, and null. */
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
  /** Fields that the images get, by name: the text of each row. */
  readonly texts?: ReadonlyMap<string, readonly string[]>;
}

/**
 * Reads a labels file, local or in a bucket: CSV with a header row, or JSON Lines. Its paths are relative to `source`,
 * or absolute and below it. Throws {@link LabelsError} with the line.
 */
export async function readLabels(location: string, source: string, storage?: StorageOptions): Promise<Labels> {
  const { by, id, line, cls, columns } = await tableOf(location, PATH_NAMES, storage);
  const shown = shownLocation(location);
  const path = id.map((named, row) => pathBelow(source, named, `${shown}:${line[row]}`));
  const areStems = by !== 'path' && !path.some((name) => isImageExtension(extensionOf(name)));
  return { location: shown, path, areStems, line, cls, columns };
}

/** Labels by key, or by path if the file has no column "key": {@link readLabels} for packed samples. */
export interface PackedLabels {
  readonly by: 'key' | 'path';
  readonly id: readonly string[];
  readonly cls: readonly string[] | null;
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
}

const PACKED_NAMES = ['key', 'path', FILE_NAME, 'filename', 'image'] as const;

/** Options for requests of a table in a bucket. */
export interface ReadLabelsOptions {
  readonly storage?: StorageOptions | undefined;
}

/**
 * Reads a labels file for packed samples: CSV, JSON Lines, or Parquet of another tool. Throws {@link LabelsError} with
 * the line.
 */
export async function readPackedLabels(location: string, { storage }: ReadLabelsOptions = {}): Promise<PackedLabels> {
  const named = PACKED_NAMES;
  const isParquet = location.endsWith('.parquet');
  const { by, ...table } = isParquet
    ? await readParquetLabels(location, named, storage)
    : await tableOf(location, named, storage);
  const { repeated } = new TextRows(table.id);
  if (repeated !== null) refuseTwice(shownLocation(location), by, table, repeated);
  return { by: by === 'key' ? 'key' : 'path', ...table };
}

/** Size of a file from which its labels are not held in memory. A row takes several times its size there. */
const HELD_BYTES = 16 << 20;

/**
 * Opens labels for `addOverlay`: small files are read like {@link readPackedLabels}, and larger ones are read row by row
 * when the overlay is made. `heldBytes`: the limit. Throws {@link LabelsError} with the line.
 */
export async function openPackedLabels(
  location: string,
  { storage, heldBytes = HELD_BYTES }: ReadLabelsOptions & { readonly heldBytes?: number } = {},
): Promise<PackedLabels | LabelFile> {
  const isParquet = location.endsWith('.parquet');
  if ((await sizeOf(location, storage)) <= heldBytes) return readPackedLabels(location, { storage });
  const shown = shownLocation(location);
  const rows = () =>
    isParquet
      ? readParquetLabelRows(location, PACKED_NAMES, storage)
      : readLabelRows(shown, textLines(location, storage), PACKED_NAMES);
  for await (const { by } of rows()) {
    // Tables of other software may name the class otherwise, which depends on all of its values.
    if (isParquet || by === 'key' || by === 'path') return { location: shown, hasClasses: !isParquet, rows };
    break;
  }
  return readPackedLabels(location, { storage });
}

/** Size of a file; 0 if it cannot be opened, so that the attempt to read it says why. Compressed text counts ten times. */
async function sizeOf(location: string, storage: StorageOptions | undefined): Promise<number> {
  try {
    if (!isRemote(location)) return statSync(location).size * (location.endsWith('.gz') ? 10 : 1);
    const source = await openSource(location, undefined, storage);
    await source.close();
    return source.size * (location.endsWith('.gz') ? 10 : 1);
  } catch {
    return 0;
  }
}

/** Rejects repeated rows, because it would be unclear which one counts. */
function refuseTwice(
  location: string,
  by: string,
  { id, line }: Pick<LabelTable<string>, 'id' | 'line'>,
  [first, second]: readonly [number, number],
): never {
  const message = `${location}:${line[second]} repeats the ${by} "${id[second]}" of line ${line[first]}. Remove one of them.`;
  throw new LabelsError({ path: location, line: line[second]! }, message);
}

async function tableOf<Name extends string>(
  location: string,
  named: readonly Name[],
  storage: StorageOptions | undefined,
): Promise<LabelTable<Name>> {
  const table = await readLabelTable(shownLocation(location), textLines(location, storage), named);
  if (table.by === 'path' || table.by === 'key') return table;
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
 * Returns the row of each file, -1 for files without a row. Throws {@link LabelsError} for two rows of one file, and
 * for a row whose file is missing, unless `onMissing` accepts it.
 */
export function rowsOfFiles(files: SourceFiles, labels: Labels, onMissing?: (row: number) => void): Int32Array {
  const rowOfFile = new Int32Array(files.count).fill(-1);
  const paths = labels.areStems === true ? pathsOfStems(files, labels) : labels.path;
  const byPath = Uint32Array.from(paths, (_, row) => row);
  const compare = codePointOrderOf(paths);
  byPath.sort((a, b) => compare(paths[a]!, paths[b]!) || a - b);
  const reader = files.reader();
  let file = 0;
  for (let i = 0; i < byPath.length; i++) {
    const row = byPath[i]!;
    const path = paths[row]!;
    if (i > 0 && paths[byPath[i - 1]!] === path) {
      fault(
        labels,
        row,
        `repeats ${path}, which is already in line ${labels.line[byPath[i - 1]!]}; remove one of them`,
      );
    }
    while (file < files.count && compareCodePoints(reader.path(file), path) < 0) file++;
    if (file < files.count && reader.path(file) === path) rowOfFile[file] = row;
    else if (onMissing !== undefined) onMissing(row);
    else {
      fault(
        labels,
        row,
        sentence`names ${path}, which is not among the files of the source; correct it, allow rows without a file (${optionName('allowMissingFiles')}), or list such rows in quarantine.jsonl with ${option('onBad', 'quarantine')}`,
      );
    }
  }
  return rowOfFile;
}

/** The path of the image that each row means, or the path in the row if no image fits. Throws {@link LabelsError} if two images fit. */
function pathsOfStems(files: SourceFiles, labels: Labels): readonly string[] {
  const images = new Map<string, string | null>(labels.path.map((stem) => [stem, null]));
  const reader = files.reader();
  for (let file = 0; file < files.count; file++) {
    const path = reader.path(file);
    const extension = extensionOf(path);
    if (!isImageExtension(extension)) continue;
    const stem = path.slice(0, path.length - extension.length - 1);
    const other = images.get(stem);
    if (other === undefined) continue;
    if (other !== null) {
      const row = labels.path.indexOf(stem);
      fault(labels, row, `names ${stem}, which may be ${other} or ${path}; add the extension`);
    }
    images.set(stem, path);
  }
  return labels.path.map((stem) => images.get(stem) ?? stem);
}

/** The extension of a path in lower case, without the dot; empty if it has none. */
function extensionOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const dot = name.lastIndexOf('.');
  return dot <= 0 ? '' : name.slice(dot + 1).toLowerCase();
}

/** Location of a row, for messages. */
export function placeOfRow({ location, line }: Labels, row: number): string {
  // COCO annotations have no line numbers.
  return line[row] === 0 ? location : `${location}:${line[row]}`;
}

function fault(labels: Labels, row: number, what: string | Sentence): never {
  const { location, line } = labels;
  throw new LabelsError({ path: location, line: line[row]! }, sentence`${placeOfRow(labels, row)} ${what}.`);
}
