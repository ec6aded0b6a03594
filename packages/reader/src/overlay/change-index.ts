import type { ColumnType, ColumnValue, FieldColumns, ShardIndex } from '@shardtool/format';
import type { IndexPieces } from '../dataset/inspection-columns.js';
import { changesOf, type Layer } from './layers.js';

/** Rows of a shard that are kept; null for all. */
export type KeptRows = Uint32Array | null;

/** Applies classes and columns of overlays to an index. The rows stay. The input is not changed. */
export function relabel(index: IndexPieces, shard: number, layers: readonly Layer[]): IndexPieces {
  const changed: { -readonly [K in keyof IndexPieces]: IndexPieces[K] } = { ...index };
  // Keys and places of samples never change.
  if (index.cls === undefined && index.columns === undefined) return changed;
  for (const layer of layers) {
    const { classMap } = layer;
    const changes = changesOf(layer, shard, index.samples);
    if (changed.cls !== undefined && (classMap !== null || (changes?.clsRows.length ?? 0) > 0)) {
      const cls = classMap === null ? changed.cls.slice() : changed.cls.map((c) => (c < 0 ? c : (classMap[c] ?? -1)));
      changes?.clsRows.forEach((row, i) => {
        cls[row] = changes.cls[i]!;
      });
      changed.cls = cls;
    }
    if (changed.columns === undefined || changes === undefined || changes.columns.size === 0) continue;
    const columns = new Map(changed.columns);
    for (const [name, { rows, values }] of changes.columns) {
      const column: ColumnValue[] = columns.get(name)?.slice() ?? new Array(index.samples).fill(null);
      rows.forEach((row, i) => {
        column[row] = values[i]!;
      });
      columns.set(name, column);
    }
    changed.columns = columns;
  }
  return changed;
}

/** Adds columns that only other shards have values for, so that all shards have the same columns. */
export function withColumns(index: IndexPieces, names: readonly string[]): IndexPieces {
  const { columns, columnTypes, samples } = index;
  if (columns === undefined) return index;
  const missing = names.filter((name) => !columns.has(name));
  if (missing.length === 0 && columnTypes === undefined) return index;
  const more = missing.map((name): [string, ColumnValue[]] => [name, new Array(samples).fill(null)]);
  // The stored types are valid for stored values. For columns that an overlay sets, the values decide.
  const types = columnTypes && new Map<string, ColumnType>([...columnTypes].filter(([name]) => !names.includes(name)));
  return { ...index, columns: new Map([...columns, ...more]), ...(types && { columnTypes: types }) };
}

/** Returns only these rows of an index or of a part of it. */
export function takeRows(index: IndexPieces, rows: KeptRows): IndexPieces {
  if (rows === null) return index;
  const taken = Object.entries(index).map(([part, value]) => {
    switch (part) {
      case 'samples':
        return [part, rows.length];
      case 'fields':
        return [part, mapValues(value as ShardIndex['fields'], (field) => takeField(field, rows))];
      case 'columns':
        return [part, mapValues(value as ShardIndex['columns'], (column) => takeValues(column, rows))];
      case 'columnTypes':
        return [part, value];
      default:
        return [part, takeValues(value as ArrayLike<unknown>, rows)];
    }
  });
  return Object.fromEntries(taken);
}

function takeField({ offset, bytes, crc32, msgpack }: FieldColumns, rows: Uint32Array): FieldColumns {
  return {
    offset: takeValues(offset, rows),
    bytes: takeValues(bytes, rows),
    ...(crc32 !== undefined && { crc32: takeValues(crc32, rows) }),
    ...(msgpack !== undefined && { msgpack: takeValues(msgpack, rows) }),
  };
}

/** Returns the same kind of list: an array or a typed array. */
function takeValues<List extends ArrayLike<unknown>>(values: List, rows: Uint32Array): List {
  const taken = new (values.constructor as new (length: number) => unknown[])(rows.length);
  for (let i = 0; i < rows.length; i++) taken[i] = values[rows[i]!];
  return taken as unknown as List;
}

function mapValues<T>(map: ReadonlyMap<string, T>, change: (value: T) => T): Map<string, T> {
  return new Map(Array.from(map, ([name, value]) => [name, change(value)]));
}
