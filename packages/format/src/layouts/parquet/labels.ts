import { UnsupportedShardError } from '@shardtool/base';
import { parquetSchema } from 'hyparquet';
import { assembleNested } from 'hyparquet/src/assemble.js';
import { readColumn } from 'hyparquet/src/column.js';
import { getTreePath } from 'hyparquet/src/schema.js';
import { flatten } from 'hyparquet/src/utils.js';
import { jsonText } from '../../sample/exact-json.js';
import type { ColumnValue } from '../../sample/label-column.js';
import type { Source } from '../../source.js';
import { FileWindow } from '../bytes/file-window.js';
import { planRuns } from '../bytes/read-runs.js';
import { labelOfColumn, labelValue } from '../columns/column-names.js';
import { isClass } from '../columns/value-columns.js';
import type { Columns, OwnColumns } from './columns.js';
import { EXACT_PARSERS, type StoredColumn, type StoredValue, storedColumn } from './exact-values.js';
import { chunkOf, damaged, type Footer, fill } from './footer.js';
import { checkPage, levelsOf } from './label-pages.js';
import { CODEC_NAMES, decompressed } from './pages/codecs.js';
import { isDamage, type Page, plainPage, readPages } from './pages/pages.js';

/** The values of the other columns for the rows of a row group. */
export interface Labels {
  /** Class numbers; null if no column is the class. */
  readonly cls: Int32Array | null;
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
  /** In files that shardtool wrote: the key of each row, and the name of the field that is its image. */
  readonly keys?: readonly ColumnValue[] | undefined;
  readonly endings?: readonly ColumnValue[] | undefined;
}

type DecodedArray = ReturnType<typeof readColumn>['data'][number];

/** Such columns are held in memory as a whole, one row group at a time. */
const MOST_COLUMN_BYTES = 256 << 20;
const MOST_VALUES = 1 << 26;

const COMPRESSORS = Object.fromEntries(
  CODEC_NAMES.map((codec) => [codec, (stored: Uint8Array, length: number) => decompressed(codec, stored, length)]),
);

/**
 * Reads all columns of a row group except those of bytes: values in the form of label columns; lists and structs as
 * JSON text. The path in a struct of bytes and path becomes the column `NAME_path`. These are few bytes, so hyparquet
 * decodes them. Throws DamagedShardError and UnsupportedShardError.
 */
export async function readLabels(source: Source, footer: Footer, group: number, columns: Columns): Promise<Labels> {
  const { location: shard } = source;
  const metadata = withoutBytes(footer, group, columns);
  const rows = Number(metadata.num_rows);
  if (metadata.schema.length === 1) return { cls: null, columns: new Map() };
  const pages = await checkPages(source, metadata);
  const chunks = await readChunks(source, metadata);
  let found: ReadonlyMap<string, DecodedArray>;
  try {
    const schema = parquetSchema(metadata);
    for (const [i, column] of metadata.row_groups[0]!.columns.entries()) {
      const { offset } = chunkOf(column);
      const levels = levelsOf(getTreePath(schema, column.meta_data!.path_in_schema));
      for (const page of pages[i]!) {
        const stored = chunks[i]!.subarray(page.offset - offset, page.offset - offset + page.bytes);
        checkPage(page, plainPage(page, stored, shard), levels);
      }
    }
    found = decodeColumns(metadata, chunks, rows);
  } catch (cause) {
    if (isDamage(cause)) throw cause;
    throw damaged(shard, 0, `its columns cannot be read (${(cause as Error).message})`, cause);
  }
  for (const [name, { length }] of found) {
    if (length !== rows)
      throw damaged(shard, 0, `its column "${name}" has ${length} rows, but its footer says ${rows}`);
  }
  return labelsOf(found, columns);
}

/** The bytes of each column of the only row group. */
async function readChunks(source: Source, { row_groups: [group] }: Footer): Promise<Uint8Array[]> {
  const chunks = group!.columns.map((column, number) => ({ ...chunkOf(column), number }));
  const found = new Array<Uint8Array>(chunks.length);
  for (const run of planRuns(chunks)) {
    const bytes = new Uint8Array(run.bytes);
    await fill(source, run.offset, bytes);
    for (const { offset, bytes: length, number } of run.spans) {
      found[number] = bytes.subarray(offset - run.offset, offset - run.offset + length);
    }
  }
  return found;
}

/**
 * The top-level columns, by name. hyparquet's own reader decodes columns concurrently; if several are damaged, all
 * errors but one become unhandled rejections. Decoding them one after the other gives one error.
 */
function decodeColumns(metadata: Footer, chunks: readonly Uint8Array[], rows: number): Map<string, DecodedArray> {
  const schema = parquetSchema(metadata);
  const select = { groupStart: 0, groupRows: rows, selectStart: 0, selectEnd: rows };
  const leaves = new Map<string, DecodedArray>();
  for (const [i, { meta_data }] of metadata.row_groups[0]!.columns.entries()) {
    const { path_in_schema: pathInSchema, type, codec } = meta_data!;
    const schemaPath = getTreePath(schema, pathInSchema);
    const { element } = schemaPath.at(-1)!;
    const stored = storedColumn(element);
    const { buffer, byteOffset, byteLength } = chunks[i]!;
    const reader = { view: new DataView(buffer, byteOffset, byteLength), offset: 0 };
    const decoder = {
      pathInSchema,
      type,
      codec,
      element: stored?.element ?? element,
      schemaPath,
      parsers: EXACT_PARSERS,
      compressors: COMPRESSORS,
      utf8: stored === undefined,
    };
    const values = flatten(readColumn(reader, select, decoder).data);
    // A missing value is null.
    if (hasGap(values)) throw new RangeError('a value is not in its dictionary');
    leaves.set(pathInSchema.join('.'), stored === undefined ? values : mapLeaves(values, stored.convert));
  }
  for (const column of schema.children) {
    if (column.children.length > 0) assembleNested(leaves, column, EXACT_PARSERS);
  }
  return leaves;
}

/** Whether a page refers to a value that its dictionary does not have. */
function hasGap(values: DecodedArray): boolean {
  return (
    Array.isArray(values) && values.some((value) => value === undefined || (Array.isArray(value) && hasGap(value)))
  );
}

/** Converts the values of a column, including those in lists. */
function mapLeaves(values: DecodedArray, convert: StoredColumn['convert']): unknown[] {
  const map = (value: unknown): unknown => {
    if (value === null || value === undefined) return value;
    return Array.isArray(value) ? value.map(map) : convert(value as StoredValue);
  };
  return Array.from(values as ArrayLike<unknown>, map);
}

function labelsOf(found: ReadonlyMap<string, DecodedArray>, columns: Columns): Labels {
  const { bytes, cls, ours } = columns;
  if (ours !== undefined) return ownLabels(found, ours);
  const ofBytes = new Set(bytes.map(({ name }) => name));
  const labels = new Map<string, ColumnValue[]>();
  let classes: Int32Array | null = null;
  for (const [name, stored] of found) {
    const isPath = ofBytes.has(name);
    const values = Array.from<unknown, ColumnValue>(stored as ArrayLike<unknown>, (value) =>
      columnValue(isPath ? pathsOf(value as WithPath | readonly WithPath[]) : value),
    );
    if (name === cls && values.every((value) => value === null || isClass(value)))
      classes = Int32Array.from(values, (value) => (value as number | null) ?? -1);
    else labels.set(labelOfColumn(isPath ? `${name}_path` : name), values);
  }
  return { cls: classes, columns: labels };
}

type WithPath = { readonly path?: unknown } | null;

/** The path of an image, or those of a list of images. */
function pathsOf(value: WithPath | readonly WithPath[]): unknown {
  return Array.isArray(value) ? value.map((item) => item?.path ?? null) : (value as WithPath)?.path;
}

/** The content of each column, as recorded by its writer. */
function ownLabels(found: ReadonlyMap<string, DecodedArray>, { of }: OwnColumns): Labels {
  let cls: Int32Array | null = null;
  const columns = new Map<string, readonly ColumnValue[]>();
  const others = new Map<string, readonly ColumnValue[]>();
  for (const [name, stored] of found) {
    const { holds, of: label } = of.get(name)!;
    const values = Array.from<unknown, ColumnValue>(stored as ArrayLike<unknown>, columnValue);
    if (holds === 'class') cls = Int32Array.from(values, (value) => (isClass(value) ? value : -1));
    else if (holds === 'key' || holds === 'ending') others.set(holds, values);
    else if (holds !== 'image') columns.set(label, values);
  }
  return { cls, columns, keys: others.get('key'), endings: others.get('ending') };
}

function columnValue(value: unknown): ColumnValue {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'string' || typeof value === 'boolean')
    return labelValue(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  return jsonText(value);
}

/** The row group as a file that has only the other columns. */
function withoutBytes(footer: Footer, group: number, { bytes }: Columns): Footer {
  const left = new Set(bytes.map(({ leaf }) => leaf));
  const { columns, ...row } = footer.row_groups[group]!;
  const schema = [{ ...footer.schema[0]! }];
  let leaf = 0;
  // Columns of bytes are at the top level, in a struct that may also have a path, or in a list of one of them.
  const take = (at: number): { next: number; kept: Footer['schema'] } => {
    const element = footer.schema[at]!;
    if (element.type !== undefined) return { next: at + 1, kept: left.has(leaf++) ? [] : [element] };
    let next = at + 1;
    let children = 0;
    const below: Footer['schema'] = [];
    for (let i = 0; i < (element.num_children ?? 0); i++) {
      const child = take(next);
      next = child.next;
      if (child.kept.length > 0) children++;
      below.push(...child.kept);
    }
    return { next, kept: children === 0 ? [] : [{ ...element, num_children: children }, ...below] };
  };
  let top = 0;
  for (let at = 1; at < footer.schema.length; ) {
    const { next, kept } = take(at);
    if (kept.length > 0) top++;
    schema.push(...kept);
    at = next;
  }
  schema[0] = { ...schema[0]!, num_children: top };
  const others = columns.filter((_, i) => !left.has(i));
  return { ...footer, schema, num_rows: row.num_rows, row_groups: [{ ...row, columns: others }] };
}

/** Checks the page headers against the footer before memory is allocated for the sizes in them. Returns the pages of each column. */
async function checkPages(source: Source, metadata: Footer): Promise<(readonly Page[])[]> {
  const { location: shard } = source;
  const window = new FileWindow(source);
  const pages: (readonly Page[])[] = [];
  for (const column of metadata.row_groups[0]!.columns) {
    const chunk = chunkOf(column);
    const name = column.meta_data!.path_in_schema.join('.');
    if (chunk.plainBytes > MOST_COLUMN_BYTES || chunk.values > MOST_VALUES) {
      const message = `${shard}: its column "${name}" takes ${chunk.plainBytes} bytes in one row group, more than the limit for labels; write it again without that column, or with smaller row groups.`;
      throw new UnsupportedShardError({ shard }, message);
    }
    pages.push(await readPages(window, shard, chunk));
  }
  return pages;
}
