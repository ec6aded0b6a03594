import { LabelsError } from '@shardtool/base';
import { jsonText, parseJson } from '../sample/exact-json.js';
import type { ColumnValue } from '../sample/label-column.js';
import { CsvSyntaxError, parseCsv } from './csv.js';

/** The content of a labels file, one row per sample. */
export interface LabelTable<Name extends string> {
  /** Which of the candidate columns identifies the sample of a row, and its values. */
  readonly by: Name;
  readonly id: readonly string[];
  /** Line of each row, from 1. */
  readonly line: Uint32Array;
  /** Class of each row, '' for none; null if the file has no column "class". */
  readonly cls: readonly string[] | null;
  /** The other columns, for the index. Each holds values of one type, and nulls. */
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
}

interface Row {
  readonly line: number;
  readonly values: ReadonlyMap<string, ColumnValue>;
}

/**
 * Reads the rows of a labels file: CSV with a header row (commas, tabs or semicolons), or JSON Lines. The first of the
 * `named` columns that the file has identifies the sample of each row. Throws {@link LabelsError} with the line.
 */
export function readLabelTable<Name extends string>(
  location: string,
  text: string,
  named: readonly Name[],
): LabelTable<Name> {
  const json = text.trimStart().startsWith('{');
  const rows = json ? jsonRows(location, text) : csvRows(location, text, named);
  let by: Name | undefined;
  const id: string[] = [];
  const line: number[] = [];
  const columns = new Map<string, ColumnValue[]>();
  for (const row of rows) {
    by ??= named.find((name) => row.values.has(name)) ?? named[0]!;
    const value = row.values.get(by);
    if (value === undefined || value === null || value === '') fault(location, row.line, `has no ${by}`);
    for (const [name, value] of row.values) {
      if (name === by) continue;
      let column = columns.get(name);
      if (column === undefined) {
        column = [];
        columns.set(name, column);
      }
      while (column.length < id.length) column.push(null);
      column.push(value);
    }
    id.push(String(value));
    line.push(row.line);
  }
  if (by === undefined) throw new LabelsError({ path: location }, `The labels file ${location} has no rows.`);
  const classes = columns.get('class');
  columns.delete('class');
  const cls = classes === undefined ? null : namesOf(json ? classes : asWhole(classes), id.length);
  for (const [name, values] of columns) columns.set(name, ofOneType(values, id.length, json));
  return { by, id, line: Uint32Array.from(line), cls, columns };
}

/**
 * Matches a whole number as it appears in a column with gaps: pandas writes class 3 as 3.0 there, and a gap as an empty
 * cell or as nan.
 */
const WHOLE = /^((?:0|[1-9]\d*)\.0+|nan)$/i;

/** Removes the `.0` of classes that are whole numbers. Other values stay unchanged. */
function asWhole(classes: readonly ColumnValue[]): readonly ColumnValue[] {
  const texts = classes.filter((value) => value !== null).map(String);
  const isWhole =
    texts.some((text) => /^\d/.test(text)) && texts.every((text) => WHOLE.test(text) || /^\d+$/.test(text));
  if (!isWhole) return classes;
  return classes.map((value) => (value === null || isNaNText(value) ? null : String(value).replace(/\.0+$/, '')));
}

function isNaNText(value: ColumnValue): boolean {
  return String(value).toLowerCase() === 'nan';
}

/** The class of each row. Equal names share one string, however many rows have them. */
function namesOf(classes: readonly ColumnValue[], rows: number): string[] {
  const names = new Map<ColumnValue, string>();
  return Array.from({ length: rows }, (_, row) => {
    const value = classes[row] ?? '';
    const known = names.get(value);
    if (known !== undefined) return known;
    const name = String(value);
    names.set(value, name);
    return name;
  });
}

function* csvRows(location: string, text: string, named: readonly string[]): Generator<Row> {
  try {
    let header: readonly string[] | undefined;
    for (const { line, cells } of parseCsv(text)) {
      if (header === undefined) {
        header = cells;
        if (!header.some((name) => named.includes(name))) {
          const names = named.map((name) => `"${name}"`).join(' or ');
          fault(
            location,
            line,
            `has the columns ${header.join(', ')}, but no column ${names}; rename the column that identifies the images`,
          );
        }
        if (new Set(header).size < header.length) fault(location, line, 'names a column twice');
      } else if (cells.length !== header.length) {
        fault(location, line, `has the wrong number of values: ${cells.length} for ${header.length} columns`);
      } else {
        yield { line, values: new Map(header.map((name, i) => [name, cells[i] === '' ? null : cells[i]!])) };
      }
    }
  } catch (error) {
    if (error instanceof CsvSyntaxError) fault(location, error.line, `is not CSV (${error.message})`, error);
    throw error;
  }
}

function* jsonRows(location: string, text: string): Generator<Row> {
  let line = 0;
  for (const source of text.split('\n')) {
    line++;
    if (source.trim() === '') continue;
    let parsed: unknown;
    try {
      parsed = parseJson(source);
    } catch (cause) {
      fault(location, line, `is not JSON (${(cause as Error).message})`, cause);
    }
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
      fault(location, line, 'is not an object');
    const values = new Map<string, ColumnValue>();
    for (const [name, value] of Object.entries(parsed)) values.set(name, jsonValue(value, location, line));
    yield { line, values };
  }
}

/** Nested values become their JSON text, and integers that no number holds exactly become their digits. */
function jsonValue(value: unknown, location: string, line: number): ColumnValue {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value;
  try {
    return jsonText(value);
  } catch (cause) {
    // Writing JSON recurses once per level; `JSON.parse` does not.
    if (cause instanceof RangeError) fault(location, line, 'is nested too deep', cause);
    throw cause;
  }
}

/** A number of any length. A leading zero marks an identifier. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const INTEGER = /^-?\d+$/;
/** Matches a missing or infinite value among numbers. */
const NO_NUMBER = /^(nan|[+-]?inf(inity)?)$/i;

/**
 * Converts the column, extended to `rows`, to values of one type: numbers or booleans if all values are, else strings.
 * In CSV, `nan` among numbers is a missing value, and `inf` is infinite.
 */
function ofOneType(values: readonly ColumnValue[], rows: number, typed: boolean): ColumnValue[] {
  const filled = Array.from({ length: rows }, (_, i) => values[i] ?? null);
  const present = filled.filter((value) => value !== null);
  if (present.every((value) => typeof value === 'boolean')) return filled;
  if (typed ? present.every((value) => typeof value === 'number') : areNumbers(present)) {
    return filled.map((value) => (value === null ? null : numberOf(value)));
  }
  return filled.map((value) => (value === null ? null : String(value)));
}

function areNumbers(cells: readonly ColumnValue[]): boolean {
  const texts = cells.map(String);
  return texts.every((text) => isNumber(text) || NO_NUMBER.test(text)) && texts.some((text) => NUMBER.test(text));
}

/** Whether a JavaScript number represents the cell: integers must be exact, others must not overflow. */
function isNumber(text: string): boolean {
  if (!NUMBER.test(text)) return false;
  return INTEGER.test(text) ? Number.isSafeInteger(Number(text)) : Number.isFinite(Number(text));
}

function numberOf(value: ColumnValue): number | null {
  if (typeof value !== 'string' || !NO_NUMBER.test(value)) return Number(value);
  if (isNaNText(value)) return null;
  return value.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

function fault(location: string, line: number, what: string, cause?: unknown): never {
  throw new LabelsError({ path: location, line }, `${location}:${line} ${what}.`, { cause });
}
