/**
 * Indexes of which each column is decoded when it is first used. A loader keeps many indexes in memory, and uses few of
 * their columns. Keys and paths take six times as many bytes in memory as in the file.
 */
import { readWhole, shownLocation } from '@shardtool/storage';
import type { ParquetColumns } from '../parquet/parquet.js';
import {
  checkColumns,
  columnsOfField,
  columnsOfPart,
  FIXED_COLUMNS,
  type FixedName,
  takeField,
  takePart,
} from './columns.js';
import { type FieldColumns, type LoadedIndex, orUnusable, readIndexFile } from './shard-index.js';

/** Reads a local index like `readShardIndex`. Its columns are decoded later, as {@link decodeLoadedIndex} describes. */
export async function loadShardIndex(path: string): Promise<LoadedIndex> {
  return decodeLoadedIndex(await readWhole(path), shownLocation(path));
}

/** Columns that every row of a loader needs. They are decoded at once. */
const OF_EVERY_ROW: ReadonlySet<FixedName> = new Set(['offset', 'bytes', 'orientation', 'cls']);
const NO_NAMES = { fields: [], columns: [] };

/**
 * Like `decodeShardIndex`, but most columns are decoded later. All bytes are checked now. If a column does not contain what the
 * footer says, its first use throws {@link ShardIndexError}.
 */
export function decodeLoadedIndex(bytes: Uint8Array, path: string): LoadedIndex {
  return readIndexFile(bytes, path, (file, names) => {
    checkColumns(file, names);
    const index: Record<string, unknown> = { samples: file.rows };
    const later = new Map<string, ParquetColumns>();
    for (const [name] of FIXED_COLUMNS) {
      if (OF_EVERY_ROW.has(name)) index[name] = takePart(file, name, NO_NAMES);
      else later.set(name, file.copyOf(columnsOfPart(name, NO_NAMES)));
    }
    index.fields = new Map(
      names.fields.map((name) => [name, fieldDecodedLater(file.copyOf(columnsOfField(name)), name, path)]),
    );
    index.columns = takePart(file, 'columns', names);
    index.columnTypes = takePart(file, 'columnTypes', names);
    addLater(index, [...later.keys()], decoderOfParts(later, path));
    return index as unknown as LoadedIndex;
  });
}

/** Returns a function that decodes one of these columns, and then drops its page. */
function decoderOfParts(columns: Map<string, ParquetColumns>, path: string): Later['decode'] {
  return (name) => {
    const value = orUnusable(path, () => takePart(columns.get(name)!, name as FixedName, NO_NAMES));
    columns.delete(name);
    return { [name]: value };
  };
}

function fieldDecodedLater(columns: ParquetColumns, field: string, path: string): FieldColumns {
  const later = {};
  addLater(later, storedParts(columns, field), decoderOfField(columns, field, path));
  return later as FieldColumns;
}

function storedParts(columns: ParquetColumns, field: string): string[] {
  const stored = columnsOfField(field).filter((name) => columns.typeOf(name) !== undefined);
  return stored.map((name) => name.slice(field.length + 1));
}

/** Returns a function that decodes all columns of a field, and then drops their pages. */
function decoderOfField(columns: ParquetColumns, field: string, path: string): Later['decode'] {
  let left: ParquetColumns | null = columns;
  return () => {
    const decoded = orUnusable(path, () => takeField(left!, field));
    left = null;
    return { ...decoded };
  };
}

/** The columns of an object that are decoded when they are first read. */
interface Later {
  readonly values: Record<string, unknown>;
  /** Decodes a column, and possibly others. */
  decode(name: string): Record<string, unknown>;
}

const LATER = Symbol('columns that are decoded later');
/** The getter of each column. All indexes share them: V8 reads objects faster if they have the same getters. */
const getters = new Map<string, (this: { readonly [LATER]: Later }) => unknown>();

/** Adds properties to an object, whose values are decoded when one of them is first read. */
function addLater(target: object, names: readonly string[], decode: Later['decode']): void {
  Object.defineProperty(target, LATER, { value: { values: {}, decode } satisfies Later });
  for (const name of names) Object.defineProperty(target, name, { get: getterOf(name), enumerable: true });
}

function getterOf(name: string) {
  let get = getters.get(name);
  if (get === undefined) {
    get = function () {
      const { values, decode } = this[LATER];
      if (!(name in values)) Object.assign(values, decode(name));
      return values[name];
    };
    getters.set(name, get);
  }
  return get;
}
