import { LabelsError } from '@shardtool/base';
import { jsonText, parseJson } from '../sample/exact-json.js';
import type { ColumnValue } from '../sample/label-column.js';
import { CsvParser, CsvSyntaxError } from './csv.js';

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

/** A row of a labels file, with one value for each of the names. */
interface Row {
  readonly line: number;
  readonly names: readonly string[];
  readonly values: readonly ColumnValue[];
}

/** Makes rows from lines. A row can have several lines, and a line need not have a row. */
interface RowParser {
  add(text: string): Row | null;
  end(): void;
}

/**
 * Reads the rows of a labels file: CSV with a header row (commas, tabs or semicolons), or JSON Lines. `lines` are its lines,
 * without line feeds, in batches. The first of the `named` columns that the file has identifies the sample of each row. Throws
 * {@link LabelsError} with the line.
 */
export async function readLabelTable<Name extends string>(
  location: string,
  lines: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
  named: readonly Name[],
): Promise<LabelTable<Name>> {
  let parser: RowParser | null = null;
  let isJson = false;
  let empty = 0;
  const table = new TableBuilder(location, named);
  for await (const batch of lines) {
    for (const text of batch) {
      if (parser === null) {
        empty++;
        if (text.trim() === '') continue;
        isJson = text.trimStart().startsWith('{');
        parser = isJson ? new JsonRows(location) : new CsvRows(location, named);
        while (--empty > 0) parser.add('');
      }
      const row = parser.add(text);
      if (row !== null) table.add(row);
    }
  }
  parser?.end();
  return table.finish(isJson);
}

/** Texts of a column that are kept once, however often they occur. */
const MOST_SHARED = 1 << 16;

class TableBuilder<Name extends string> {
  readonly #location: string;
  readonly #named: readonly Name[];
  #by: Name | undefined;
  readonly #id: string[] = [];
  readonly #line: number[] = [];
  readonly #columns = new Map<string, { readonly values: ColumnValue[]; readonly shared: Map<string, string> }>();

  constructor(location: string, named: readonly Name[]) {
    this.#location = location;
    this.#named = named;
  }

  add({ line, names, values }: Row): void {
    this.#by ??= this.#named.find((name) => names.includes(name)) ?? this.#named[0]!;
    const value = values[names.indexOf(this.#by)];
    if (value === undefined || value === null || value === '') fault(this.#location, line, `has no ${this.#by}`);
    names.forEach((name, at) => {
      if (name !== this.#by) this.#set(name, values[at]!);
    });
    this.#id.push(String(value));
    this.#line.push(line);
  }

  #set(name: string, value: ColumnValue): void {
    let column = this.#columns.get(name);
    if (column === undefined) {
      column = { values: [], shared: new Map() };
      this.#columns.set(name, column);
    }
    extend(column.values, this.#id.length);
    column.values.push(typeof value === 'string' ? sharedText(column.shared, value) : value);
  }

  finish(isJson: boolean): LabelTable<Name> {
    if (this.#by === undefined)
      throw new LabelsError({ path: this.#location }, `The labels file ${this.#location} has no rows.`);
    const rows = this.#id.length;
    const columns = new Map<string, readonly ColumnValue[]>();
    let cls: readonly string[] | null = null;
    for (const [name, { values }] of this.#columns) {
      extend(values, rows);
      if (name === 'class') cls = namesOf(isJson ? values : asWhole(values));
      else columns.set(name, ofOneType(values, isJson));
    }
    return { by: this.#by, id: this.#id, line: Uint32Array.from(this.#line), cls, columns };
  }
}

/** Rows without a value have null. */
function extend(values: ColumnValue[], rows: number): void {
  while (values.length < rows) values.push(null);
}

/** Equal texts share one string. Returns other texts as they are if there are too many of them, such as captions. */
function sharedText(texts: Map<string, string>, text: string): string {
  const known = texts.get(text);
  if (known === undefined && texts.size < MOST_SHARED) texts.set(text, text);
  return known ?? text;
}

class CsvRows implements RowParser {
  readonly #location: string;
  readonly #named: readonly string[];
  readonly #parser = new CsvParser();
  #header: readonly string[] | null = null;

  constructor(location: string, named: readonly string[]) {
    this.#location = location;
    this.#named = named;
  }

  add(text: string): Row | null {
    const record = this.#checked(() => this.#parser.add(text));
    if (record === null) return null;
    const { line, cells } = record;
    if (this.#header === null) {
      this.#header = checkHeader(this.#location, line, cells, this.#named);
      return null;
    }
    if (cells.length !== this.#header.length) {
      const counts = `${cells.length} for ${this.#header.length} columns`;
      fault(this.#location, line, `has the wrong number of values: ${counts}`);
    }
    return { line, names: this.#header, values: cells.map((cell) => (cell === '' ? null : cell)) };
  }

  end(): void {
    this.#checked(() => this.#parser.end());
  }

  #checked<Result>(parse: () => Result): Result {
    try {
      return parse();
    } catch (error) {
      if (error instanceof CsvSyntaxError)
        fault(this.#location, error.line, `is not valid CSV (${error.message})`, error);
      throw error;
    }
  }
}

function checkHeader(
  location: string,
  line: number,
  header: readonly string[],
  named: readonly string[],
): readonly string[] {
  if (!header.some((name) => named.includes(name))) {
    const names = named.map((name) => `"${name}"`).join(' or ');
    const there = header.join(', ');
    fault(
      location,
      line,
      `has the columns ${there}, but no column ${names}; rename the column that identifies the images`,
    );
  }
  if (new Set(header).size < header.length) fault(location, line, 'names a column twice');
  return header;
}

class JsonRows implements RowParser {
  readonly #location: string;
  #line = 0;

  constructor(location: string) {
    this.#location = location;
  }

  add(text: string): Row | null {
    const line = ++this.#line;
    if (text.trim() === '') return null;
    let parsed: unknown;
    try {
      parsed = parseJson(text);
    } catch (cause) {
      fault(this.#location, line, `is not JSON (${(cause as Error).message})`, cause);
    }
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
      fault(this.#location, line, 'is not an object');
    const names = Object.keys(parsed);
    return { line, names, values: Object.values(parsed).map((value) => jsonValue(value, this.#location, line)) };
  }

  end(): void {}
}

/**
 * Matches a whole number as it appears in a column with gaps: pandas writes class 3 as 3.0 there, and a gap as an empty
 * cell or as nan.
 */
const WHOLE = /^((?:0|[1-9]\d*)\.0+|nan)$/i;

/** Removes the `.0` of classes that are whole numbers. Other values stay unchanged. */
function asWhole(classes: readonly ColumnValue[]): readonly ColumnValue[] {
  let isNumbered = false;
  for (const value of classes) {
    if (value === null) continue;
    const text = String(value);
    if (!WHOLE.test(text) && !/^\d+$/.test(text)) return classes;
    isNumbered ||= /^\d/.test(text);
  }
  if (!isNumbered) return classes;
  return classes.map((value) => (value === null || isNaNText(value) ? null : String(value).replace(/\.0+$/, '')));
}

function isNaNText(value: ColumnValue): boolean {
  return String(value).toLowerCase() === 'nan';
}

/** The class of each row. Equal names share one string, however many rows have them. */
function namesOf(classes: readonly ColumnValue[]): string[] {
  const names = new Map<ColumnValue, string>();
  return classes.map((value) => {
    const known = names.get(value);
    if (known !== undefined) return known;
    const name = String(value ?? '');
    names.set(value, name);
    return name;
  });
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
 * Converts the column to values of one type: numbers or booleans if all values are, else strings. In CSV, `nan` among
 * numbers is a missing value, and `inf` is infinite.
 */
function ofOneType(values: ColumnValue[], isJson: boolean): readonly ColumnValue[] {
  if (values.every((value) => value === null || typeof value === 'boolean')) return values;
  const areAllNumbers = isJson
    ? values.every((value) => value === null || typeof value === 'number')
    : areNumbers(values);
  values.forEach((value, row) => {
    if (value !== null) values[row] = areAllNumbers ? numberOf(value) : String(value);
  });
  return values;
}

function areNumbers(cells: readonly ColumnValue[]): boolean {
  let hasNumber = false;
  for (const cell of cells) {
    if (cell === null) continue;
    const text = String(cell);
    if (!isNumber(text) && !NO_NUMBER.test(text)) return false;
    hasNumber ||= NUMBER.test(text);
  }
  return hasNumber;
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
