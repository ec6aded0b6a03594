import { OptionError } from '@shardtool/base';
import { compileWhere, type Dataset, selectableOf } from '@shardtool/reader';
import type { TableColumn } from './label-columns.js';
import type { Query } from './protocol.js';
import type { SampleTable } from './sample-table.js';

/** 1 for each row that matches an expression. */
export type WhereRows = Uint8Array;

/** Evaluates the expression for every row of every index. Throws WhereError if the expression is invalid. */
export async function whereRows(dataset: Dataset, text: string): Promise<WhereRows> {
  const where = compileWhere(text, dataset.classes);
  const selectable = selectableOf(dataset, { where: text });
  const holds = new Uint8Array(dataset.size);
  for (let shard = 0; shard < dataset.shards.length; shard++) {
    const first = dataset.files.firstSample[shard]!;
    const { samples } = dataset.shards[shard]!;
    if (samples === 0) continue;
    const isWanted = where(await selectable.indexOf(shard));
    for (let row = 0; row < samples; row++) if (isWanted(row)) holds[first + row] = 1;
  }
  return holds;
}

/** Returns the column of this name. Throws {@link OptionError}. */
export function columnOf(table: SampleTable, name: string): TableColumn {
  const column = table.columns.get(name);
  if (column !== undefined) return column;
  throw new OptionError({}, `There is no column "${name}": the columns are ${[...table.columns.keys()].join(', ')}.`);
}

/** Returns the rows that match all filters, in rising order. */
export function filteredRows(
  table: SampleTable,
  { ranges, values }: Pick<Query, 'ranges' | 'values'>,
  where: WhereRows | null,
): Uint32Array {
  const fits = [
    ...Object.entries(ranges).map(([name, range]) => inRange(table, name, range)),
    ...Object.entries(values).map(([name, wanted]) => hasValue(table, name, wanted)),
  ];
  if (where === null && fits.length === 0) return new Uint32Array(table.rows).map((_, row) => row);
  const found = new Uint32Array(table.rows);
  let count = 0;
  for (let row = 0; row < table.rows; row++) {
    if (where !== null && where[row] === 0) continue;
    if (fits.every((fit) => fit(row))) found[count++] = row;
  }
  return found.slice(0, count);
}

type Fit = (row: number) => boolean;

function inRange(table: SampleTable, name: string, [from, to]: readonly [number, number]): Fit {
  const column = columnOf(table, name);
  if (column.kind !== 'number')
    throw new OptionError({}, `The column "${name}" has no numbers, so it cannot be filtered by a range.`);
  const { values } = column;
  return (row) => values[row]! >= from && values[row]! < to;
}

function hasValue(table: SampleTable, name: string, wanted: readonly string[]): Fit {
  const column = columnOf(table, name);
  if (column.kind !== 'category')
    throw new OptionError({}, `The column "${name}" cannot be filtered by single values: use where.`);
  const isWanted = Uint8Array.from(column.names, (one) => (wanted.includes(one) ? 1 : 0));
  const { codes } = column;
  return (row) => isWanted[codes[row]!] === 1;
}

/** Sorts rows by a column, in place. Rows without a value come last. Equal rows keep the order of the dataset. */
export function sortRows(table: SampleTable, rows: Uint32Array, sort: NonNullable<Query['sort']>): Uint32Array {
  const column = columnOf(table, sort.column);
  const sign = sort.descending ? -1 : 1;
  if (column.kind === 'text') return rows.sort((a, b) => sign * column.texts.compare(a, b) || a - b);
  const values = column.kind === 'number' ? column.values : ranksOf(column.codes, column.names);
  return rows.sort((a, b) => {
    const [left, right] = [values[a]!, values[b]!];
    if (left === right) return a - b;
    if (Number.isNaN(left)) return Number.isNaN(right) ? a - b : 1;
    if (Number.isNaN(right)) return -1;
    return left < right ? -sign : sign;
  });
}

/** Returns the rank of each row's name in alphabetical order; NaN without a name. */
function ranksOf(codes: Int32Array, names: readonly string[]): Float64Array {
  const byName = names.map((_, code) => code).sort((a, b) => (names[a]! < names[b]! ? -1 : 1));
  const rank = new Float64Array(names.length);
  byName.forEach((code, place) => {
    rank[code] = place;
  });
  return Float64Array.from(codes, (code) => rank[code] ?? Number.NaN);
}

/** Returns the value of a row as the page shows it. */
export function cellValue(column: TableColumn, row: number): number | string | null {
  if (column.kind === 'text') return column.texts.get(row);
  if (column.kind === 'category') return column.names[column.codes[row]!] ?? null;
  return Number.isNaN(column.values[row]!) ? null : column.values[row]!;
}
