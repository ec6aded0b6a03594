import { OptionError } from '@shardtool/base';
import type { Column, ParquetColumns } from '../parquet/parquet.js';
import type { ColumnValues, ValueType } from '../parquet/values.js';
import {
  type ColumnType,
  type ColumnValue,
  columnTypeOf,
  INDEX_COLUMNS,
  type IndexColumn,
  labelsOf,
  labelType,
  labelValues,
} from '../sample/label-column.js';
import type { FieldColumns, ShardIndex } from './shard-index.js';

/**
 * A column with one value per sample, whatever its fields. To add a column, add an entry here, a member of {@link
 * ShardIndex}, and its values in `IndexRows`; the compiler then names every place that builds such rows.
 */
interface FixedColumn {
  readonly type: 'string' | 'int64' | 'int32';
  /** Whether it holds offsets or lengths in a shard. */
  readonly isPlace?: true;
  /** Whether it comes after the columns of the fields. */
  readonly isBehindFields?: true;
  /** Converts the stored values to those kept in memory, if they differ. */
  narrow?(stored: Int32Array): Uint8Array;
  /** The values of an index that was written without the column; absent if the column is required. */
  absent?(rows: number): readonly string[] | Int32Array | Uint8Array;
}

const FIXED = {
  key: { type: 'string' },
  source: { type: 'string', absent: (rows) => new Array<string>(rows).fill('') },
  offset: { type: 'int64', isPlace: true },
  bytes: { type: 'int64', isPlace: true },
  width: { type: 'int32', isBehindFields: true, absent: (rows) => new Int32Array(rows) },
  height: { type: 'int32', isBehindFields: true, absent: (rows) => new Int32Array(rows) },
  orientation: {
    type: 'int32',
    isBehindFields: true,
    narrow: (stored) => Uint8Array.from(stored),
    absent: (rows) => new Uint8Array(rows),
  },
  cls: { type: 'int32', isBehindFields: true, absent: (rows) => new Int32Array(rows).fill(-1) },
} satisfies { readonly [K in keyof ShardIndex & IndexColumn]: FixedColumn };

export type FixedName = keyof typeof FIXED;
/** Columns that an index may lack. */
export type OptionalName = {
  [Name in FixedName]: (typeof FIXED)[Name] extends { readonly absent: unknown } ? Name : never;
}[FixedName];
export const FIXED_COLUMNS = Object.entries(FIXED) as readonly (readonly [FixedName, FixedColumn])[];

/** A column with one value per sample that has the field: the columns of field `jpg` are `jpg.offset`, `jpg.bytes`, `jpg.crc32`. */
interface FieldColumn {
  readonly type: 'int64' | 'uint32' | 'bool';
  readonly isPlace?: true;
  /** The value in memory for a sample without the field. */
  readonly lacking: number;
  /** An index may lack the column; it is omitted if `isWorthwhile` returns false. */
  readonly isOptional?: true;
  isWorthwhile?(values: Uint8Array): boolean;
}

const OF_FIELD = {
  offset: { type: 'int64', isPlace: true, lacking: -1 },
  bytes: { type: 'int64', isPlace: true, lacking: 0 },
  crc32: { type: 'uint32', lacking: 0, isOptional: true },
  msgpack: { type: 'bool', lacking: 0, isOptional: true, isWorthwhile: (values) => values.includes(1) },
} satisfies { readonly [K in keyof FieldColumns]-?: FieldColumn };

export const FIELD_COLUMNS = Object.entries(OF_FIELD) as readonly (readonly [keyof typeof OF_FIELD, FieldColumn])[];

/** Throws {@link OptionError} if a label column has the name of one of the index's own columns. */
export function checkLabelColumns(labels: Iterable<string>, fields: Iterable<string>): void {
  const own = new Set<string>(INDEX_COLUMNS);
  for (const field of fields) for (const part of Object.keys(OF_FIELD)) own.add(`${field}.${part}`);
  for (const label of labels) {
    if (!own.has(label)) continue;
    throw new OptionError({}, `The label column "${label}" has the name of a column of the index; rename it.`);
  }
}

/** The columns of the file, in order. */
export function columnsOf(index: ShardIndex): Column[] {
  checkLabelColumns(index.columns.keys(), index.fields.keys());
  const columns = FIXED_COLUMNS.filter(([, column]) => !column.isBehindFields).map(([name, { type }]) =>
    fixedColumn(name, type, index[name]),
  );
  for (const [name, field] of index.fields) columns.push(...fieldColumns(name, field));
  for (const [name, { type, isBehindFields }] of FIXED_COLUMNS) {
    if (isBehindFields) columns.push(fixedColumn(name, type, index[name]));
  }
  for (const [name, values] of index.columns) {
    columns.push(labelColumn(name, index.columnTypes?.get(name) ?? columnTypeOf(name, values), values));
  }
  for (const { name, present, data } of columns) {
    const rows = present === null ? data.values.length : present.length;
    if (rows !== index.samples) throw new RangeError(`column "${name}" has ${rows} rows instead of ${index.samples}`);
  }
  return columns;
}

function fixedColumn(name: FixedName, type: FixedColumn['type'], kept: ShardIndex[FixedName]): Column {
  const values = type === 'int32' ? Int32Array.from(kept as ArrayLike<number>) : kept;
  return { name, nullable: false, present: null, data: { type, values } as ColumnValues };
}

type Numbers = Float64Array | Uint32Array | Uint8Array;

function fieldColumns(field: string, columns: FieldColumns): Column[] {
  const { offset } = columns;
  const present = presentWhere(offset.length, (row) => offset[row]! >= 0);
  return FIELD_COLUMNS.flatMap(([part, { type, isWorthwhile }]): Column[] => {
    const values: Numbers | undefined = columns[part];
    if (values === undefined || isWorthwhile?.(values as Uint8Array) === false) return [];
    const kept = present === null ? values : values.filter((_, row) => present[row] === 1);
    return [{ name: `${field}.${part}`, nullable: true, present, data: { type, values: kept } as ColumnValues }];
  });
}

export function labelColumn(name: string, type: ColumnType, values: readonly ColumnValue[]): Column {
  const present = presentWhere(values.length, (row) => values[row] !== null);
  const data = labelValues(name, type, values);
  return { name, nullable: true, present, data };
}

/** 1 or 0 for each row; null if all are 1. */
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

/** Which columns of the file belong to fields and which are labels, according to the footer. */
export interface ColumnNames {
  readonly fields: readonly string[];
  readonly columns: readonly string[];
}

/** The columns of the file that a part consists of, including optional ones. */
export function columnsOfPart(part: IndexPart, { fields, columns }: ColumnNames): string[] {
  if (part === 'fields') return fields.flatMap(columnsOfField);
  if (part === 'columns') return [...columns];
  return part === 'columnTypes' ? [] : [part];
}

/** The columns of the file that belong to a field, including optional ones. */
export function columnsOfField(field: string): string[] {
  return FIELD_COLUMNS.map(([of]) => `${field}.${of}`);
}

/** Throws RangeError if the footer lacks a column that an index must have, or names another type for it. */
export function checkColumns(file: ParquetColumns, { fields }: ColumnNames): void {
  const check = (name: string, type: ValueType, mayBeMissing: boolean) => {
    const found = file.typeOf(name);
    if (found === undefined && !mayBeMissing) throw new RangeError(`column "${name}" is missing`);
    if (found !== undefined && found !== type) throw new RangeError(`column "${name}" has the type ${found}`);
  };
  for (const [name, { type, absent }] of FIXED_COLUMNS) check(name, type, absent !== undefined);
  for (const field of fields) {
    for (const [of, { type, isOptional }] of FIELD_COLUMNS) check(`${field}.${of}`, type, isOptional === true);
  }
}

/** Decodes the columns of one part. Throws RangeError if one is missing or does not have the form of {@link columnsOf}. */
export function takePart(file: ParquetColumns, part: IndexPart, names: ColumnNames): unknown {
  switch (part) {
    case 'fields':
      return new Map(names.fields.map((name) => [name, takeField(file, name)]));
    case 'columns':
      return new Map(names.columns.map((name) => [name, takeLabels(file, name)]));
    case 'columnTypes':
      return new Map(names.columns.map((name) => [name, labelType(file.typeOf(name)!)]));
    default:
      return takeFixed(file, part);
  }
}

function takeFixed(file: ParquetColumns, name: FixedName): unknown {
  const { type, isPlace, narrow, absent }: FixedColumn = FIXED[name];
  // In a damaged file, a missing column that the footer names is lost.
  if (absent !== undefined && file.typeOf(name) === undefined) return absent(file.rows);
  const values = take(file, name, type);
  if (isPlace) checkPlaces(name, values as Float64Array);
  return narrow?.(values as Int32Array) ?? values;
}

type ValuesOf<T extends ValueType> = Extract<ColumnValues, { readonly type: T }>['values'];

function column(file: ParquetColumns, name: string): Column {
  const found = file.read(name);
  if (found === undefined) throw new RangeError(`column "${name}" is missing`);
  return found;
}

export function values<T extends ValueType>({ name, data }: Column, type: T): ValuesOf<T> {
  if (data.type !== type) throw new RangeError(`column "${name}" has the type ${data.type}`);
  return data.values as ValuesOf<T>;
}

/** Decodes a column that has a value in every row. */
function take<T extends ValueType>(file: ParquetColumns, name: string, type: T): ValuesOf<T> {
  const found = column(file, name);
  if (found.present !== null) throw new RangeError(`column "${name}" lacks values`);
  return values(found, type);
}

export function takeField(file: ParquetColumns, field: string): FieldColumns {
  const parts = FIELD_COLUMNS.flatMap(([part, { type, isPlace, lacking, isOptional }]) => {
    const name = `${field}.${part}`;
    if (isOptional && file.typeOf(name) === undefined) return [];
    const found = column(file, name);
    const stored: Numbers = values(found, type);
    if (isPlace) checkPlaces(name, stored as Float64Array);
    return [[part, spread(found, stored, file.rows, lacking)]];
  });
  return Object.fromEntries(parts);
}

/** Fills in the `missing` value for rows without a value. */
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

export function takeLabels(file: ParquetColumns, name: string): readonly ColumnValue[] {
  const { present, data } = column(file, name);
  const labels = labelsOf(data);
  if (present === null) return labels;
  let next = 0;
  return Array.from(present, (has) => (has === 1 ? labels[next++]! : null));
}

function checkPlaces(name: string, places: Float64Array): void {
  for (const place of places) {
    if (!(place >= 0 && place <= Number.MAX_SAFE_INTEGER)) throw new RangeError(`column "${name}" contains ${place}`);
  }
}
