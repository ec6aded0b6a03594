import { OptionError } from '@shardtool/base';
import type { ColumnValues } from '../parquet/values.js';

const INDEX_COLUMN_NAMES = ['key', 'source', 'offset', 'bytes', 'width', 'height', 'orientation', 'cls'] as const;
/** A column that every index has. */
export type IndexColumn = (typeof INDEX_COLUMN_NAMES)[number];
/** Names of the index's own columns, which label columns cannot have. */
export const INDEX_COLUMNS: ReadonlySet<string> = new Set(INDEX_COLUMN_NAMES);

/** A value of a label column; null if a sample has none. */
export type ColumnValue = string | number | boolean | null;

/** The types of label columns. An `int` is a safe integer, stored in 64 bits. */
export const COLUMN_TYPES = ['string', 'int', 'double', 'bool'] as const;
export type ColumnType = (typeof COLUMN_TYPES)[number];

/**
 * The narrowest type that holds every value: integers mixed with other numbers are `double`, only nulls are `string`.
 * Throws {@link OptionError} that names the column if text, numbers and booleans are mixed.
 */
export function columnTypeOf(name: string, values: Iterable<ColumnValue>): ColumnType {
  let type: ColumnType | undefined;
  for (const value of values) {
    if (value === null) continue;
    const here = valueTypeOf(value);
    if (type === undefined || type === here) type = here;
    else if (isNumeric(type) && isNumeric(here)) type = 'double';
    else throw mixed(name, type, here);
  }
  return type ?? 'string';
}

/** Encodes the values that are not null. Throws {@link OptionError} if one does not have the column's type. */
export function labelValues(name: string, type: ColumnType, values: readonly ColumnValue[]): ColumnValues {
  const present = values.filter((value) => value !== null);
  for (const value of present) {
    const here = valueTypeOf(value);
    if (here !== type && !(type === 'double' && here === 'int')) throw mixed(name, type, here);
  }
  switch (type) {
    case 'string':
      return { type, values: present as string[] };
    case 'int':
      return { type: 'int64', values: Float64Array.from(present as number[]) };
    case 'double':
      return { type, values: Float64Array.from(present as number[]) };
    case 'bool':
      return { type, values: Uint8Array.from(present as boolean[], Number) };
  }
}

/** The type of a column of the file. */
export function labelType(type: ColumnValues['type']): ColumnType {
  if (type === 'int64' || type === 'int32' || type === 'uint32') return 'int';
  return type;
}

/** The values of a column of the file, without rows that have none. */
export function labelsOf({ type, values }: ColumnValues): readonly ColumnValue[] {
  if (type === 'string') return values;
  return type === 'bool' ? Array.from(values, Boolean) : Array.from<number>(values);
}

function valueTypeOf(value: string | number | boolean): ColumnType {
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  return Number.isSafeInteger(value) && !Object.is(value, -0) ? 'int' : 'double';
}

function isNumeric(type: ColumnType): boolean {
  return type === 'int' || type === 'double';
}

function mixed(name: string, one: ColumnType, other: ColumnType): OptionError {
  const message =
    `The label column "${name}" mixes values of type ${one} and of type ${other}; use text for all, ` +
    'numbers for all, or booleans for all.';
  return new OptionError({}, message);
}
