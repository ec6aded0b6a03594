import { LabelsError } from '@shardtool/base';
import { jsonText, parseJson } from '../sample/exact-json.js';
import type { ColumnValue } from '../sample/label-column.js';
import { CsvParser, CsvSyntaxError } from './csv.js';

/** A row of a labels file, with one value for each of the names. */
interface Row {
  readonly line: number;
  readonly names: readonly string[];
  readonly values: readonly ColumnValue[];
}

/** A row of a labels file. Values are as the file has them: `ColumnKind` converts them when all are known. */
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

/** Few enough that the collector finds most rows unused when it next looks. */
const ROWS_AT_ONCE = 1000;

/** Yields the rows of a labels file, many at a time. See `readLabelTable`. */
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

function fault(location: string, line: number, what: string, cause?: unknown): never {
  throw new LabelsError({ path: location, line }, `${location}:${line} ${what}.`, { cause });
}
