import { LabelsError } from '@shardtool/base';
import type { ColumnValue } from '../sample/label-column.js';
import { ColumnKind } from './column-kind.js';
import { type LabelRows, readLabelRows } from './label-rows.js';

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

function valuesOf(values: ColumnValue[], kind: ColumnKind): readonly ColumnValue[] {
  const convert = kind.values();
  values.forEach((value, row) => {
    if (value !== null) values[row] = convert(value);
  });
  return values;
}
