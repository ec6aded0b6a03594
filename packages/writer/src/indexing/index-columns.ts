import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { OptionError, Recent, TextRows } from '@shardtool/base';
import {
  type ColumnType,
  type ColumnValue,
  checkLabelColumns,
  columnTypeOf,
  jsonText,
  openShard,
  ownerOf,
  parseJson,
  readShardIndex,
  type ShardIndex,
  writeShardIndex,
} from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';
import { fieldPayloads } from '../shard/field-payloads.js';
import { type PackedLabels, readPackedLabels } from '../source/labels/labels.js';

/** Columns that are added to indexes. */
export interface AddedColumns {
  /**
   * Values inside JSON fields: `json.width` is `width` in the field `json`, and `json.size.0` is the first item of
   * `size` there.
   */
  readonly columns: readonly string[];
  /** Files with columns by key: Parquet, CSV or JSON Lines. A file named after a shard applies to that shard only. */
  readonly labels: readonly string[];
}

/** A shard and its index. */
export interface IndexedShard {
  readonly path: string;
  readonly format: Parameters<typeof openShard>[0];
  /** Options for requests, if it is remote. */
  readonly storage?: StorageOptions | undefined;
  readonly index: string;
}

/** Result of adding columns. */
export interface ColumnsReport {
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[];
  /** Number of samples with an invalid JSON field: their values are null. */
  readonly unreadable: number;
  /** Number of samples without a row in the labels: their values are null. */
  readonly unlabelled: number;
}

/** Longer JSON fields are not read. */
const MAX_JSON_BYTES = 64 << 20;
const TABLES_HELD = 4;

/**
 * Adds columns to the indexes of these shards, or replaces them. A column has the same type in all shards: if it is
 * text in one shard and numbers in another, it becomes text. Throws {@link OptionError} for a column that no shard can
 * have, and errors of a labels file, an index or a shard. Indexes before the failed one then have their columns.
 */
export async function addColumns(shards: readonly IndexedShard[], wanted: AddedColumns): Promise<ColumnsReport> {
  const types = new Map<string, ColumnType | null>();
  const count = { unreadable: 0, unlabelled: 0 };
  await checkFields(shards, wanted.columns);
  const tables = new LabelTables(await filesOf(wanted.labels), shards);
  for (const shard of shards) {
    const index = await readShardIndex(shard.index);
    const added = new Map<string, ColumnValue[]>();
    count.unreadable += await addFromJson(shard, index, wanted.columns, added);
    for (const table of await tables.of(shard)) count.unlabelled += addFromLabels(index, table, added);
    for (const [name, values] of added) types.set(name, merged(types.get(name) ?? null, ownType(values)));
    await writeShardIndex(shard.index, withColumns(index, added, types));
  }
  // A column whose type changed in a later shard is written again with that type.
  for (const shard of shards) {
    const index = await readShardIndex(shard.index);
    const late = [...types].filter(([name, type]) => type !== null && index.columnTypes?.get(name) !== type);
    if (late.length === 0) continue;
    const nothing = () => new Array<ColumnValue>(index.samples).fill(null);
    const added = new Map(late.map(([name]) => [name, [...(index.columns.get(name) ?? nothing())]]));
    await writeShardIndex(shard.index, withColumns(index, added, types));
  }
  return { columns: [...types].map(([name, type]) => ({ name, type: type ?? 'string' })), ...count };
}

/** Throws {@link OptionError} for a column that no shard can have, before anything is written. */
async function checkFields(shards: readonly IndexedShard[], columns: readonly string[]): Promise<void> {
  const missing = new Set(columns);
  for (const shard of shards) {
    if (missing.size === 0) return;
    const index = await readShardIndex(shard.index, { parts: ['fields'] });
    checkLabelColumns(columns, index.fields.keys());
    for (const name of missing) if (fieldOf(name, index) !== undefined) missing.delete(name);
  }
  const [none] = missing;
  if (none !== undefined) throw noField(none);
}

/** Paths of the labels files. For a folder: its Parquet files, except indexes of shardtool. */
async function filesOf(places: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const place of places) {
    if (statSync(place, { throwIfNoEntry: false })?.isDirectory() !== true) {
      files.push(place);
      continue;
    }
    for (const name of readdirSync(place).sort()) {
      const file = path.join(place, name);
      if (name.endsWith('.parquet') && (await ownerOf('index', file)) === 'other') files.push(file);
    }
  }
  return files;
}

function withColumns(
  index: ShardIndex,
  added: ReadonlyMap<string, readonly ColumnValue[]>,
  types: ReadonlyMap<string, ColumnType | null>,
): ShardIndex {
  const columns = new Map(index.columns);
  const columnTypes = new Map(index.columnTypes);
  for (const [name, values] of added) {
    const type = types.get(name) ?? 'string';
    columns.set(name, type === 'string' ? values.map((value) => (value === null ? null : String(value))) : values);
    columnTypes.set(name, type);
  }
  return { ...index, columns, columnTypes };
}

/** Null if there are no values. */
function ownType(values: readonly ColumnValue[]): ColumnType | null {
  const kinds = new Set(values.map((value) => (value === null ? null : typeof value)));
  kinds.delete(null);
  if (kinds.size === 0) return null;
  return kinds.size > 1 ? 'string' : columnTypeOf('', values);
}

function merged(one: ColumnType | null, other: ColumnType | null): ColumnType | null {
  if (one === null || other === null || one === other) return one ?? other;
  const isNumeric = (type: ColumnType) => type === 'int' || type === 'double';
  return isNumeric(one) && isNumeric(other) ? 'double' : 'string';
}

/** The field that a name starts with: the longest match, since fields can contain dots. */
function fieldOf(name: string, { fields }: Pick<ShardIndex, 'fields'>): string | undefined {
  const found = [...fields.keys()].filter((field) => name.startsWith(`${field}.`));
  return found.sort((a, b) => b.length - a.length)[0];
}

/** Puts the values of these columns into `added`, and returns the number of samples whose field is not valid JSON. */
async function addFromJson(
  { path: shard, format, storage }: IndexedShard,
  index: ShardIndex,
  names: readonly string[],
  added: Map<string, ColumnValue[]>,
): Promise<number> {
  const byField = new Map<string, { readonly steps: readonly string[]; readonly values: ColumnValue[] }[]>();
  for (const name of names) {
    const values = new Array<ColumnValue>(index.samples).fill(null);
    added.set(name, values);
    const field = fieldOf(name, index);
    if (field === undefined) continue;
    const steps = name.slice(field.length + 1).split('.');
    byField.set(field, [...(byField.get(field) ?? []), { steps, values }]);
  }
  if (byField.size === 0) return 0;
  let unreadable = 0;
  const source = await openShard(format, shard, undefined, storage);
  try {
    for (const [field, wanted] of byField) {
      for await (const { row, payload } of fieldPayloads(source, index, field, MAX_JSON_BYTES)) {
        const json = payload === null ? undefined : parsed(payload);
        if (json === undefined) unreadable++;
        else for (const { steps, values } of wanted) values[row] = valueAt(json, steps);
      }
    }
  } finally {
    await source.close();
  }
  return unreadable;
}

/** Parses the JSON of a field. Returns undefined if it is invalid. */
function parsed(payload: Uint8Array): unknown {
  try {
    return parseJson(Buffer.from(payload).toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Returns the value at this path. Lists and objects become JSON text, and a missing value is null. */
function valueAt(json: unknown, steps: readonly string[]): ColumnValue {
  let value = json;
  for (const step of steps) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return null;
    value = (value as Record<string, unknown>)[step];
  }
  if (typeof value === 'bigint' || (typeof value === 'object' && value !== null)) return jsonText(value);
  return value as ColumnValue;
}

/** Puts the columns of a table into `added`, and returns the number of samples without a row. */
function addFromLabels(index: ShardIndex, table: LoadedTable, added: Map<string, ColumnValue[]>): number {
  const rows = index.key.map((key, row) => table.rowOf.get(table.by === 'key' ? key : index.source[row]!));
  for (const [name, values] of table.columns) {
    const own = added.get(name) ?? new Array<ColumnValue>(index.samples).fill(null);
    for (const [i, row] of rows.entries()) if (row !== undefined) own[i] = values[row] ?? null;
    added.set(name, own);
  }
  return rows.filter((row) => row === undefined).length;
}

interface LoadedTable extends Pick<PackedLabels, 'by' | 'columns'> {
  readonly rowOf: TextRows;
}

/** Labels files; a few of them are kept in memory. */
class LabelTables {
  readonly #files: readonly string[];
  readonly #isForOne: ReadonlySet<string>;
  readonly #loaded = new Recent(TABLES_HELD, loadTable);

  constructor(files: readonly string[], shards: readonly IndexedShard[]) {
    const stems = new Set(shards.map(({ path: shard }) => stemOf(shard)));
    this.#files = files;
    this.#isForOne = new Set(files.filter((file) => stems.has(stemOf(file))));
  }

  async of({ path: shard }: IndexedShard): Promise<LoadedTable[]> {
    const files = this.#files.filter((file) => !this.#isForOne.has(file) || stemOf(file) === stemOf(shard));
    const tables: LoadedTable[] = [];
    for (const file of files) tables.push(await this.#loaded.get(file));
    return tables;
  }
}

async function loadTable(file: string): Promise<LoadedTable> {
  const { by, id, columns } = await readPackedLabels(file);
  return { by, columns, rowOf: new TextRows(id) };
}

/** Common stem of a shard and the labels file next to it. */
function stemOf(file: string): string {
  return path.basename(file).replace(/\.[^.]*$/, '');
}

function noField(name: string): OptionError {
  return new OptionError(
    {},
    `The column "${name}" does not start with a field of these shards; use FIELD.NAME, such as json.width for "width" in the field json.`,
  );
}
