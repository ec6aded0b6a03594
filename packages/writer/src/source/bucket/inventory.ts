import { basename, dirname, join } from 'node:path';
import { didYouMean, FileNotFoundError, reasonOf } from '@shardtool/base';
import { type ColumnValue, CsvParser, type CsvRecord, CsvSyntaxError, readParquetRows } from '@shardtool/format';
import { entryAt, isRemote, readWhole, type StorageOptions, shownLocation } from '@shardtool/storage';
import { SourceError } from '../../errors.js';
import { textLines } from '../text-file.js';

/** A file of a bucket, as an inventory lists it. */
export interface InventoryEntry {
  /** Relative to the source. */
  readonly name: string;
  readonly size: number;
  readonly modifiedMs?: number | undefined;
}

/** Columns of an inventory, and the names that they may have, in lower case without other characters than letters. */
const COLUMNS = {
  bucket: ['bucket'],
  key: ['key', 'name', 'path'],
  size: ['size', 'bytes', 'contentlength'],
  modified: ['lastmodifieddate', 'lastmodified', 'mtime', 'modified'],
  isLatest: ['islatest'],
  isDeleteMarker: ['isdeletemarker'],
} as const;
type ColumnName = keyof typeof COLUMNS;

/** The position of each column that an inventory has. */
type Layout = Partial<Record<ColumnName, number>>;

const PARQUET = /\.parquet$/i;

/**
 * Yields the files below `root` (`s3://bucket/folder/`) that an inventory lists, in its order. `location` is a local file or an
 * object of a bucket: the manifest.json of an S3 Inventory in CSV or Parquet, one of its data files, or any Parquet file, or CSV
 * file (also .gz) with a header, that has the columns key and size, and optionally bucket and last_modified. Keys are complete
 * keys of the bucket. In files of S3 Inventory, they are URL-encoded and are decoded here. Old versions and delete markers are
 * skipped. Throws SourceError for a file in another format, and FileError.
 */
export async function* readInventory(
  location: string,
  root: string,
  storage: StorageOptions | undefined,
): AsyncGenerator<InventoryEntry> {
  const { bucket, prefix } = placeOf(root);
  for await (const row of rowsOf(location, storage)) {
    if (row.isOld || (row.bucket !== undefined && row.bucket !== bucket)) continue;
    if (!row.key.startsWith(prefix) || row.key.length === prefix.length || row.key.endsWith('/')) continue;
    yield { name: row.key.slice(prefix.length), size: row.size, modifiedMs: row.modifiedMs };
  }
}

interface Row {
  readonly bucket: string | undefined;
  readonly key: string;
  readonly size: number;
  readonly modifiedMs: number | undefined;
  readonly isOld: boolean;
}

function placeOf(root: string): { readonly bucket: string; readonly prefix: string } {
  const match = /^[a-z0-9+]+:\/\/([^/]+)\/(.*)$/i.exec(root);
  if (match === null)
    throw new SourceError(
      { path: root },
      `${shownLocation(root)} is not a location in a bucket, such as s3://bucket/photos.`,
    );
  return { bucket: match[1]!, prefix: match[2]! };
}

function rowsOf(location: string, storage: StorageOptions | undefined): AsyncGenerator<Row> {
  if (/\.json$/i.test(location)) return manifestRows(location, storage);
  if (PARQUET.test(location)) return parquetRows(location, storage);
  return csvRows(location, null, storage);
}

/** The rows of all data files that the manifest.json of an S3 Inventory lists. */
async function* manifestRows(location: string, storage: StorageOptions | undefined): AsyncGenerator<Row> {
  const path = shownLocation(location);
  const text = Buffer.from(await readWhole(location, storage)).toString();
  let manifest: { fileFormat?: unknown; fileSchema?: unknown; destinationBucket?: unknown; files?: unknown };
  try {
    manifest = JSON.parse(text);
  } catch (cause) {
    throw new SourceError({ path }, `${path} is not valid JSON (${reasonOf(cause as Error)}).`, { cause });
  }
  const { fileFormat, fileSchema, destinationBucket, files } = manifest;
  if (!Array.isArray(files) || typeof fileFormat !== 'string' || files.some((file) => typeof file?.key !== 'string')) {
    throw new SourceError(
      { path },
      `${path} is not the manifest.json of an S3 Inventory: it lacks "fileFormat" or "files".`,
    );
  }
  if (!['csv', 'parquet'].includes(fileFormat.toLowerCase())) {
    throw new SourceError({ path }, `${path} names files in the format ${fileFormat}; choose CSV or Parquet instead.`);
  }
  const bucket = String(destinationBucket ?? '').replace(/^arn:[^:]*:s3:::/, '');
  for (const { key } of files as readonly { readonly key: string }[]) {
    const file = await dataFile(location, bucket, key, storage);
    if (fileFormat.toLowerCase() === 'parquet') yield* parquetRows(file, storage);
    else yield* csvRows(file, { names: String(fileSchema).split(','), path }, storage);
  }
}

/**
 * The location of a data file. For a local manifest: next to it, or in a folder "data" next to or above it. For a manifest in a
 * bucket: in the bucket that it names.
 */
async function dataFile(
  manifest: string,
  bucket: string,
  key: string,
  storage: StorageOptions | undefined,
): Promise<string> {
  if (isRemote(manifest)) return `${/^[a-z0-9+]+:\/\//i.exec(manifest)![0]}${bucket}/${key}`;
  const name = basename(key);
  const folder = dirname(manifest);
  const places = [join(folder, key), join(folder, name), join(folder, 'data', name), join(folder, '..', 'data', name)];
  for (const place of places) if ((await entryAt(place, storage)) !== null) return place;
  const message = `${manifest} names the file ${key}, which is not next to it: download it to ${join(folder, name)}, or give the s3:// URL of manifest.json.`;
  throw new FileNotFoundError({ path: manifest }, message);
}

async function* parquetRows(location: string, storage: StorageOptions | undefined): AsyncGenerator<Row> {
  const path = shownLocation(location);
  let layout: Layout | null = null;
  for await (const { rows, columns } of readParquetRows(location, storage)) {
    const names = [...columns.keys()].map((name) => (name === 'key_' ? 'key' : name));
    layout ??= layoutOf(names, path);
    const values = [...columns.values()];
    for (let row = 0; row < rows; row++) yield rowOf(layout, (at) => values[at]?.[row] ?? null, false, path, row + 1);
  }
}

/** `schema`: the columns of a file without a header, and the file that lists them; null if the first line is the header. */
async function* csvRows(
  location: string,
  schema: { readonly names: readonly string[]; readonly path: string } | null,
  storage: StorageOptions | undefined,
): AsyncGenerator<Row> {
  const path = shownLocation(location);
  let found = schema === null ? null : layoutOf(schema.names, schema.path);
  let isEncoded = schema !== null;
  let width = schema?.names.length ?? 0;
  for await (const { line: number, cells } of recordsOf(location, storage)) {
    width ||= cells.length;
    if (cells.length !== width) {
      const message = `Row ${number} of ${path} has the wrong number of values: ${cells.length} for ${width} columns. Quote keys with commas, and make the file again if it was cut short.`;
      throw new SourceError({ path }, message);
    }
    if (found === null) {
      // A delete marker has no size, so the first row that counts shows where the size is.
      if (hasVersions(cells) && isOldVersion(VERSION_COLUMNS, (at) => cells[at]!, path, number)) continue;
      const guessed = guessedLayout(cells);
      isEncoded = guessed !== null;
      found = guessed ?? layoutOf(cells, path);
      if (guessed === null) continue;
    }
    yield rowOf(found, (at) => cells[at] ?? null, isEncoded, path, number);
  }
}

/** Columns of a data file of S3 Inventory with all versions. Column 2 is the identifier of the version. */
const VERSION_COLUMNS = { bucket: 0, key: 1, isLatest: 3, isDeleteMarker: 4 } as const;

function hasVersions(cells: readonly string[]): boolean {
  const { isLatest, isDeleteMarker } = VERSION_COLUMNS;
  return [isLatest, isDeleteMarker].every((at) => /^(?:true|false)$/i.test(cells[at] ?? ''));
}

/**
 * The columns of a data file of S3 Inventory, which has no header: bucket and key come first, and then three columns about
 * versions if all versions are listed. The others are recognized by the form of their values. Null for a header.
 */
function guessedLayout(cells: readonly string[]): Layout | null {
  const [first, others] = hasVersions(cells) ? [VERSION_COLUMNS, 5] : [{ bucket: 0, key: 1 }, 2];
  const size = cells.findIndex((cell, at) => at >= others && /^\d+$/.test(cell));
  if (size === -1) return null;
  const modified = cells.findIndex((cell) => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(cell));
  return { ...first, size, ...(modified !== -1 && { modified }) };
}

/** Throws SourceError if the column key or size is missing. */
function layoutOf(names: readonly string[], path: string): Layout {
  const plain = names.map((name) => name.toLowerCase().replace(/[^a-z]/g, ''));
  const layout: Layout = {};
  for (const [column, others] of Object.entries(COLUMNS)) {
    const at = plain.findIndex((name) => (others as readonly string[]).includes(name));
    if (at !== -1) layout[column as ColumnName] = at;
  }
  const missing = (['key', 'size'] as const).find((column) => layout[column] === undefined);
  if (missing === undefined) return layout;
  const message = `${path} has the columns ${names.map((name) => name.trim()).join(', ')}, but no column "${missing}"${didYouMean(missing, names)}; it must have key and size.`;
  throw new SourceError({ path }, message);
}

function rowOf(
  layout: Layout,
  valueAt: (column: number) => ColumnValue,
  isEncoded: boolean,
  path: string,
  number: number,
): Row {
  const value = (column: ColumnName) => (layout[column] === undefined ? null : valueAt(layout[column]));
  const isOld = isOldVersion(layout, valueAt, path, number);
  const key = String(value('key') ?? '');
  const size = sizeOf(value('size'));
  if (!isOld && (key === '' || !(Number.isSafeInteger(size) && size >= 0))) {
    const what = key === '' ? 'no key' : `the size ${JSON.stringify(value('size'))}, which is not a number of bytes`;
    throw new SourceError({ path }, `Row ${number} of ${path} has ${what}.`);
  }
  const bucket = value('bucket');
  return {
    bucket: bucket === null || bucket === '' ? undefined : String(bucket),
    key: isEncoded ? decoded(key, path, number) : key,
    size,
    modifiedMs: timeOf(value('modified'), path, number),
    isOld,
  };
}

/** Whether a row is a delete marker, or a version that another one has replaced. */
function isOldVersion(layout: Layout, valueAt: (column: number) => ColumnValue, path: string, number: number): boolean {
  const flag = (column: 'isLatest' | 'isDeleteMarker') => {
    const at = layout[column];
    return at === undefined ? null : flagOf(valueAt(at), column, path, number);
  };
  return flag('isDeleteMarker') === true || flag('isLatest') === false;
}

/** NaN for a value that is not a decimal number. */
function sizeOf(value: ColumnValue): number {
  return typeof value === 'number' || /^\s*\d+\s*$/.test(String(value)) ? Number(value) : Number.NaN;
}

/** Null if the row has no value. Any other value is an error, because it would silently skip the file. */
function flagOf(value: ColumnValue, column: ColumnName, path: string, number: number): boolean | null {
  if (value === null || value === '') return null;
  const text = String(value).toLowerCase();
  if (text === 'true' || text === 'false') return text === 'true';
  const message = `Row ${number} of ${path} has the value ${JSON.stringify(value)} in the column "${column}", which must be true or false.`;
  throw new SourceError({ path }, message);
}

/** S3 Inventory encodes keys like URLs. A plus sign in a key is encoded too, so a plus sign stands for a space. */
function decoded(key: string, path: string, number: number): string {
  if (!key.includes('%') && !key.includes('+')) return key;
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch (cause) {
    const message = `Row ${number} of ${path} has the key ${JSON.stringify(key)}, which is not encoded like those of an S3 Inventory; write a header into the file (key,size) if its keys are plain.`;
    throw new SourceError({ path }, message, { cause });
  }
}

/** Converts a time, as text or as milliseconds since 1970, to milliseconds since 1970. */
function timeOf(value: ColumnValue, path: string, number: number): number | undefined {
  if (value === null || value === '') return undefined;
  const time = typeof value === 'number' ? value : Date.parse(String(value));
  if (Number.isFinite(time)) return time;
  throw new SourceError(
    { path },
    `Row ${number} of ${path} has the time ${JSON.stringify(value)}, which is not a date and time.`,
  );
}

async function* recordsOf(location: string, storage: StorageOptions | undefined): AsyncGenerator<CsvRecord> {
  const parser = new CsvParser();
  try {
    for await (const lines of textLines(location, storage)) {
      for (const line of lines) {
        const record = parser.add(line);
        if (record !== null) yield record;
      }
    }
    parser.end();
  } catch (cause) {
    if (!(cause instanceof CsvSyntaxError)) throw cause;
    const path = shownLocation(location);
    const message = `Line ${cause.line} of ${path} is not valid CSV: ${cause.message}.`;
    throw new SourceError({ path }, message, { cause });
  }
}
