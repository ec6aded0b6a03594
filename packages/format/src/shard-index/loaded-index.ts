/**
 * Indexes of which each column is decoded when it is first used. A loader keeps many indexes in memory, and uses few of
 * their columns. Keys and paths take six times as many bytes in memory as in the file.
 */
import { readWhole, shownLocation } from '@shardtool/storage';
import type { ParquetColumns } from '../parquet/parquet.js';
import { checkColumns, columnsOfField, columnsOfPart, FIXED_COLUMNS, takeField, takePart } from './columns.js';
import { type FieldColumns, type LoadedIndex, orUnusable, readIndexFile, type ShardIndex } from './shard-index.js';

/** Reads a local index like `readShardIndex`. Its columns are decoded later, as {@link decodeLoadedIndex} describes. */
export async function loadShardIndex(path: string): Promise<LoadedIndex> {
  return decodeLoadedIndex(await readWhole(path), shownLocation(path));
}

/**
 * Like `decodeShardIndex`, but the columns are decoded later. All bytes are checked now. If a column does not contain what the
 * footer says, its first use throws {@link ShardIndexError}.
 */
export function decodeLoadedIndex(bytes: Uint8Array, path: string): LoadedIndex {
  return readIndexFile(bytes, path, (file, names) => {
    checkColumns(file, names);
    const index = {
      samples: file.rows,
      fields: new Map(
        names.fields.map((name) => [name, fieldDecodedLater(file.copyOf(columnsOfField(name)), name, path)]),
      ),
      columns: takePart(file, 'columns', names),
      columnTypes: takePart(file, 'columnTypes', names),
    };
    for (const [name] of FIXED_COLUMNS) {
      decodePartLater(index, name, file.copyOf(columnsOfPart(name, names)), path);
    }
    return index as unknown as ShardIndex;
  });
}

function decodePartLater(index: object, name: (typeof FIXED_COLUMNS)[number][0], column: ParquetColumns, path: string) {
  const none = { fields: [], columns: [] };
  addLater(index, [name], () => ({ [name]: orUnusable(path, () => takePart(column, name, none)) }));
}

function fieldDecodedLater(columns: ParquetColumns, field: string, path: string): FieldColumns {
  const stored = columnsOfField(field).filter((name) => columns.typeOf(name) !== undefined);
  const parts = stored.map((name) => name.slice(field.length + 1));
  const later = {};
  addLater(later, parts, () => orUnusable(path, () => takeField(columns, field)));
  return later as FieldColumns;
}

/** Adds properties to an object, whose values are made when one of them is first read. */
function addLater(target: object, names: readonly string[], make: () => object): void {
  for (const name of names) {
    const get = () => {
      const made = make();
      for (const each of names) {
        const value = made[each as keyof typeof made];
        Object.defineProperty(target, each, { value, configurable: true, enumerable: true });
      }
      return made[name as keyof typeof made];
    };
    Object.defineProperty(target, name, { get, configurable: true, enumerable: true });
  }
}
