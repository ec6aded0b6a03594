import { OptionError } from '../errors.js';
import type { Column, ParquetFile } from '../parquet/parquet.js';
import type { ColumnValues, ValueType } from '../parquet/values.js';
import { type ColumnType, type ColumnValue, columnTypeOf, labelsOf, labelType, labelValues } from './label-column.js';
import type { FieldColumns, ShardIndex } from './shard-index.js';

/** Columns of every index. The columns of field `jpg` are `jpg.offset`, `jpg.bytes` and `jpg.crc32`. */
export const FIXED = ['key', 'source', 'offset', 'bytes', 'width', 'height', 'orientation', 'cls'] as const;
export const OF_FIELD = ['offset', 'bytes', 'crc32', 'msgpack'] as const;

/** Throws {@link OptionError} where a label column has the name of one of the index's own columns. */
export function checkLabelColumns(labels: Iterable<string>, fields: Iterable<string>): void {
  const own = new Set<string>(FIXED);
  for (const field of fields) for (const part of OF_FIELD) own.add(`${field}.${part}`);
  for (const label of labels) {
    if (!own.has(label)) continue;
    throw new OptionError({}, `The label column "${label}" has the name of a column of the index; rename it.`);
  }
}

/** The columns of the file, in its order. */
export function columnsOf(index: ShardIndex): Column[] {
  checkLabelColumns(index.columns.keys(), index.fields.keys());
  const columns = [
    required('key', { type: 'string', values: index.key }),
    required('source', { type: 'string', values: index.source }),
    required('offset', { type: 'int64', values: index.offset }),
    required('bytes', { type: 'int64', values: index.bytes }),
  ];
  for (const [name, field] of index.fields) columns.push(...fieldColumns(name, field));
  columns.push(
    required('width', { type: 'int32', values: index.width }),
    required('height', { type: 'int32', values: index.height }),
    required('orientation', { type: 'int32', values: Int32Array.from(index.orientation) }),
    required('cls', { type: 'int32', values: index.cls }),
  );
  for (const [name, values] of index.columns) {
    columns.push(labelColumn(name, index.columnTypes?.get(name) ?? columnTypeOf(name, values), values));
  }
  for (const { name, present, data } of columns) {
    const rows = present === null ? data.values.length : present.length;
    if (rows !== index.samples) throw new RangeError(`column "${name}" has ${rows} rows, not ${index.samples}`);
  }
  return columns;
}

function required(name: string, data: ColumnValues): Column {
  return { name, nullable: false, present: null, data };
}

function fieldColumns(field: string, { offset, bytes, crc32, msgpack }: FieldColumns): Column[] {
  const present = presentWhere(offset.length, (row) => offset[row]! >= 0);
  const kept = <T extends Float64Array | Uint32Array | Uint8Array>(values: T): T =>
    present === null ? values : (values.filter((_, row) => present[row] === 1) as T);
  const column = (part: string, data: ColumnValues): Column => {
    return { name: `${field}.${part}`, nullable: true, present, data };
  };
  return [
    column('offset', { type: 'int64', values: kept(offset) }),
    column('bytes', { type: 'int64', values: kept(bytes) }),
    column('crc32', { type: 'uint32', values: kept(crc32) }),
    ...(msgpack?.includes(1) ? [column('msgpack', { type: 'bool', values: kept(msgpack) })] : []),
  ];
}

function labelColumn(name: string, type: ColumnType, values: readonly ColumnValue[]): Column {
  const present = presentWhere(values.length, (row) => values[row] !== null);
  const data = labelValues(name, type, values);
  return { name, nullable: true, present, data };
}

/** 1 or 0 for each row; null where all are 1. */
function presentWhere(rows: number, isPresent: (row: number) => boolean): Uint8Array | null {
  const present = new Uint8Array(rows);
  let missing = 0;
  for (let row = 0; row < rows; row++) {
    if (isPresent(row)) present[row] = 1;
    else missing++;
  }
  return missing === 0 ? null : present;
}

/** The parts of an index, each of one or more columns of the file. */
export type IndexPart = Exclude<keyof ShardIndex, 'samples'>;

/** Which columns of the file belong to fields and which are labels: what the footer says. */
export interface ColumnNames {
  readonly fields: readonly string[];
  readonly columns: readonly string[];
}

/** Decodes the columns of one part. Throws RangeError where one is missing or not as {@link columnsOf} made it. */
export function takePart(file: ParquetFile, part: IndexPart, names: ColumnNames): unknown {
  switch (part) {
    case 'key':
    case 'source':
      return take(file, part, 'string');
    case 'offset':
    case 'bytes':
      return checkPositions(part, take(file, part, 'int64'));
    case 'width':
    case 'height':
    case 'cls':
      return take(file, part, 'int32');
    case 'orientation':
      return Uint8Array.from(take(file, part, 'int32'));
    case 'fields':
      return new Map(names.fields.map((name) => [name, takeField(file, name)]));
    case 'columns':
      return new Map(names.columns.map((name) => [name, takeLabels(file, name)]));
    case 'columnTypes':
      return new Map(names.columns.map((name) => [name, labelType(file.typeOf(name)!)]));
  }
}

type ValuesOf<T extends ValueType> = Extract<ColumnValues, { readonly type: T }>['values'];

function column(file: ParquetFile, name: string): Column {
  const found = file.read(name);
  if (found === undefined) throw new RangeError(`column "${name}" is missing`);
  return found;
}

export function values<T extends ValueType>({ name, data }: Column, type: T): ValuesOf<T> {
  if (data.type !== type) throw new RangeError(`column "${name}" is of type ${data.type}`);
  return data.values as ValuesOf<T>;
}

/** A column that has a value in every row. */
function take<T extends ValueType>(file: ParquetFile, name: string, type: T): ValuesOf<T> {
  const found = column(file, name);
  if (found.present !== null) throw new RangeError(`column "${name}" lacks values`);
  return values(found, type);
}

function takeField(file: ParquetFile, field: string): FieldColumns {
  const offset = column(file, `${field}.offset`);
  const bytes = column(file, `${field}.bytes`);
  const crc32 = column(file, `${field}.crc32`);
  const msgpack = file.read(`${field}.msgpack`);
  return {
    offset: spread(offset, checkPositions(offset.name, values(offset, 'int64')), file.rows, -1),
    bytes: spread(bytes, checkPositions(bytes.name, values(bytes, 'int64')), file.rows, 0),
    crc32: spread(crc32, values(crc32, 'uint32'), file.rows, 0),
    ...(msgpack && { msgpack: spread(msgpack, values(msgpack, 'bool'), file.rows, 0) }),
  };
}

/** Gives rows without a value the `missing` one. */
export function spread<T extends Float64Array | Uint32Array | Uint8Array>(
  { present }: Column,
  values: T,
  rows: number,
  missing: number,
): T {
  if (present === null) return values;
  const spread = new (values.constructor as new (length: number) => T)(rows);
  let next = 0;
  for (let row = 0; row < rows; row++) spread[row] = present[row] === 1 ? values[next++]! : missing;
  return spread;
}

export function takeLabels(file: ParquetFile, name: string): readonly ColumnValue[] {
  const { present, data } = column(file, name);
  const labels = labelsOf(data);
  if (present === null) return labels;
  let next = 0;
  return Array.from(present, (has) => (has === 1 ? labels[next++]! : null));
}

function checkPositions(name: string, positions: Float64Array): Float64Array {
  for (const position of positions) {
    if (!(position >= 0 && position <= Number.MAX_SAFE_INTEGER)) {
      throw new RangeError(`column "${name}" holds ${position}`);
    }
  }
  return positions;
}
