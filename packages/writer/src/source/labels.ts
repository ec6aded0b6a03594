import type { ColumnValue } from '@shardtool/format';
import { LabelsError } from '../errors.js';
import { CsvSyntaxError, parseCsv } from './csv.js';
import { codePointOrderOf, compareCodePoints } from './file-table.js';
import { pathBelow, readTextFile } from './list.js';
import type { SourceFiles } from './source-files.js';

/** What a labels file says, one row an image. */
export interface Labels {
  /** The labels file, for messages. */
  readonly location: string;
  /** Relative to the source. */
  readonly path: readonly string[];
  /** Line of each row, from 1. */
  readonly line: Uint32Array;
  /** Class of each row, '' for none; null where the file has no column "class". */
  readonly cls: readonly string[] | null;
  /** Further columns, for the index; each holds values of one type, and null. */
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
}

interface Row {
  readonly line: number;
  readonly values: ReadonlyMap<string, ColumnValue>;
}

/**
 * Reads a labels file: CSV with a header row, or JSON Lines. Its paths are relative to `source`, or absolute and below
 * it. Throws {@link LabelsError} with the line.
 */
export function readLabels(location: string, source: string): Labels {
  const text = readTextFile(location);
  const json = text.trimStart().startsWith('{');
  const rows = json ? jsonRows(location, text) : csvRows(location, text);
  const path: string[] = [];
  const line: number[] = [];
  const columns = new Map<string, ColumnValue[]>();
  for (const row of rows) {
    const named = row.values.get('path');
    if (named === undefined || named === null || named === '') fault(location, row.line, 'has no path');
    for (const [name, value] of row.values) {
      if (name === 'path') continue;
      let column = columns.get(name);
      if (column === undefined) {
        column = [];
        columns.set(name, column);
      }
      while (column.length < path.length) column.push(null);
      column.push(value);
    }
    path.push(pathBelow(source, String(named), `${location}:${row.line}`));
    line.push(row.line);
  }
  if (path.length === 0) throw new LabelsError({ path: location }, `The labels file ${location} has no rows.`);
  const classes = columns.get('class');
  columns.delete('class');
  const cls = classes === undefined ? null : namesOf(classes, path.length);
  for (const [name, values] of columns) columns.set(name, ofOneType(values, path.length, json));
  return { location, path, line: Uint32Array.from(line), cls, columns };
}

/** The class of each row; a name is one string however many rows have it. */
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

function* csvRows(location: string, text: string): Generator<Row> {
  try {
    let header: readonly string[] | undefined;
    for (const { line, cells } of parseCsv(text)) {
      if (header === undefined) {
        header = cells;
        if (!header.includes('path')) {
          fault(location, line, `has the columns ${header.join(', ')}, but none of the name "path"`);
        }
        if (new Set(header).size < header.length) fault(location, line, 'names a column twice');
      } else if (cells.length !== header.length) {
        fault(location, line, `has ${cells.length} cells, the header has ${header.length}`);
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
      parsed = JSON.parse(source);
    } catch (cause) {
      fault(location, line, `is not JSON (${(cause as Error).message})`, cause);
    }
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) fault(location, line, 'is no object');
    yield { line, values: new Map(Object.entries(parsed).map(([name, value]) => [name, jsonValue(value)])) };
  }
}

/** Nested values become their JSON text. */
function jsonValue(value: unknown): ColumnValue {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value;
  return JSON.stringify(value);
}

/** A number that reads back as it was written: no leading zero, which marks an identifier. */
const NUMBER = /^-?(0|[1-9]\d{0,14})(\.\d{1,15})?([eE][+-]?\d{1,2})?$/;

/** The column, filled up to `rows`, with values of one type: numbers or booleans where all are, else strings. */
function ofOneType(values: readonly ColumnValue[], rows: number, typed: boolean): ColumnValue[] {
  const filled = Array.from({ length: rows }, (_, i) => values[i] ?? null);
  const present = filled.filter((value) => value !== null);
  if (present.every((value) => typeof value === 'boolean')) return filled;
  if (present.every((value) => typeof value === 'number' || (!typed && NUMBER.test(String(value))))) {
    return filled.map((value) => (value === null ? null : Number(value)));
  }
  return filled.map((value) => (value === null ? null : String(value)));
}

function fault(location: string, line: number, what: string, cause?: unknown): never {
  throw new LabelsError({ path: location, line }, `${location}:${line} ${what}.`, { cause });
}

/**
 * The row of each file, -1 for files that no row names. Throws {@link LabelsError} for a row whose file is not there, and
 * for two rows of one file.
 */
export function rowsOfFiles(files: SourceFiles, labels: Labels): Int32Array {
  const rowOfFile = new Int32Array(files.count).fill(-1);
  const byPath = Uint32Array.from(labels.path, (_, row) => row);
  const compare = codePointOrderOf(labels.path);
  byPath.sort((a, b) => compare(labels.path[a]!, labels.path[b]!) || a - b);
  const reader = files.reader();
  let file = 0;
  for (let i = 0; i < byPath.length; i++) {
    const row = byPath[i]!;
    const path = labels.path[row]!;
    if (i > 0 && labels.path[byPath[i - 1]!] === path) {
      fault(
        labels.location,
        labels.line[row]!,
        `names ${path} again; it stands in line ${labels.line[byPath[i - 1]!]}, too`,
      );
    }
    while (file < files.count && compareCodePoints(reader.path(file), path) < 0) file++;
    if (file === files.count || reader.path(file) !== path) {
      fault(labels.location, labels.line[row]!, `names ${path}, which is not among the files of the source`);
    }
    rowOfFile[file] = row;
  }
  return rowOfFile;
}
