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

/** A row of a labels file. Values are as the file has them: {@link ColumnKind} converts them when all are known. */
export interface LabelRow extends Row {
  readonly id: string;
}

/** Some rows of a labels file. */
export interface LabelRows<Name extends string> {
  /** Which of the candidate columns identifies the sample of a row. Its values are in `id`, and in `values` too. */
  readonly by: Name;
  readonly isJson: boolean;
  readonly rows: readonly LabelRow[];
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
  const table = new TableBuilder<Name>();
  for await (const rows of readLabelRows(location, lines, named)) table.add(rows);
  return table.finish(location);
}

/** Few enough that the collector finds most rows unused when it next looks. */
const ROWS_AT_ONCE = 1000;

/** Yields the rows of a labels file, many at a time. Reads and throws like {@link readLabelTable}. */
export async function* readLabelRows<Name extends string>(
  location: string,
  lines: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
  named: readonly Name[],
): AsyncGenerator<LabelRows<Name>> {
  let parser: RowParser | null = null;
  let by: Name | undefined;
  let isJson = false;
  let empty = 0;
  for await (const batch of lines) {
    let rows: LabelRow[] = [];
    for (const text of batch) {
      if (parser === null) {
        empty++;
        if (text.trim() === '') continue;
        isJson = text.trimStart().startsWith('{');
        parser = isJson ? new JsonRows(location) : new CsvRows(location, named);
        while (--empty > 0) parser.add('');
      }
      const row = parser.add(text);
      if (row === null) continue;
      const { line, names, values } = row;
      by ??= named.find((name) => names.includes(name)) ?? named[0]!;
      const value = values[names.indexOf(by)];
      if (value === undefined || value === null || value === '') fault(location, line, `has no ${by}`);
      rows.push({ id: String(value), line, names, values });
      if (rows.length < ROWS_AT_ONCE) continue;
      yield { by, isJson, rows };
      rows = [];
    }
    if (by !== undefined) yield { by, isJson, rows };
  }
  parser?.end();
}

/** Texts of a column that are kept once, however often they occur. */
const MOST_SHARED = 1 << 16;

class TableBuilder<Name extends string> {
  #by: Name | undefined;
  #isJson = false;
  readonly #id: string[] = [];
  readonly #line: number[] = [];
  readonly #columns = new Map<string, { readonly values: ColumnValue[]; readonly shared: Map<string, string> }>();

  add({ by, isJson, rows }: LabelRows<Name>): void {
    this.#by = by;
    this.#isJson = isJson;
    for (const { id, line, names, values } of rows) {
      names.forEach((name, at) => {
        if (name !== by) this.#set(name, values[at]!);
      });
      this.#id.push(id);
      this.#line.push(line);
    }
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

  finish(location: string): LabelTable<Name> {
    if (this.#id.length === 0) throw noRows(location);
    const isJson = this.#isJson;
    const rows = this.#id.length;
    const columns = new Map<string, readonly ColumnValue[]>();
    let cls: readonly string[] | null = null;
    for (const [name, { values }] of this.#columns) {
      extend(values, rows);
      const kind = new ColumnKind(isJson);
      for (const value of values) kind.add(value);
      if (name === 'class') cls = namesOf(values, kind);
      else columns.set(name, valuesOf(values, kind));
    }
    return { by: this.#by!, id: this.#id, line: Uint32Array.from(this.#line), cls, columns };
  }
}

/** The error for a labels file without a row. */
export function noRows(location: string): LabelsError {
  return new LabelsError({ path: location }, `The labels file ${location} has no rows.`);
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

function isNaNText(value: ColumnValue): boolean {
  return String(value).toLowerCase() === 'nan';
}

/** The class of each row. Equal names share one string, however many rows have them. */
function namesOf(values: readonly ColumnValue[], kind: ColumnKind): string[] {
  const classOf = kind.classes();
  const names = new Map<ColumnValue, string>();
  return values.map((value) => {
    const known = names.get(value);
    if (known !== undefined) return known;
    const name = classOf(value);
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

function valuesOf(values: ColumnValue[], kind: ColumnKind): readonly ColumnValue[] {
  const convert = kind.values();
  values.forEach((value, row) => {
    if (value !== null) values[row] = convert(value);
  });
  return values;
}

/** How the values of a column are converted, which depends on all of them. */
export class ColumnKind {
  readonly #isJson: boolean;
  #areBooleans = true;
  #areNumbers = true;
  #areWhole = true;
  /** Whether a cell is a number, and not only a gap such as `nan`. */
  #hasNumber = false;
  #hasWhole = false;

  constructor(isJson: boolean) {
    this.#isJson = isJson;
  }

  /** Takes the next value of the column. */
  add(value: ColumnValue): void {
    if (value === null) return;
    this.#areBooleans &&= typeof value === 'boolean';
    if (this.#isJson) {
      this.#areNumbers &&= typeof value === 'number';
      return;
    }
    const text = String(value);
    if (this.#areNumbers) {
      this.#areNumbers = isNumber(text) || NO_NUMBER.test(text);
      this.#hasNumber ||= NUMBER.test(text);
    }
    if (this.#areWhole) {
      this.#areWhole = WHOLE.test(text) || /^\d+$/.test(text);
      this.#hasWhole ||= /^\d/.test(text);
    }
  }

  /**
   * The conversion to values of one type: numbers or booleans if all values are, else strings. In CSV, `nan` among
   * numbers is a missing value, and `inf` is infinite.
   */
  values(): (value: ColumnValue) => ColumnValue {
    if (this.#areBooleans) return (value) => value;
    const areNumbers = this.#areNumbers && (this.#isJson || this.#hasNumber);
    return (value) => (value === null ? null : areNumbers ? numberOf(value) : String(value));
  }

  /** The conversion to names of classes, '' for none. In CSV, classes that are whole numbers lose their `.0`. */
  classes(): (value: ColumnValue) => string {
    if (this.#isJson || !this.#areWhole || !this.#hasWhole) return (value) => String(value ?? '');
    return (value) => (value === null || isNaNText(value) ? '' : String(value).replace(/\.0+$/, ''));
  }
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
