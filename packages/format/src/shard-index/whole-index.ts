/** Functions for whole indexes, whatever their columns: a new column needs no change here. */
import { FIXED_COLUMNS, type IndexPart, type OptionalName } from './columns.js';
import type { FieldColumns, ShardIndex } from './shard-index.js';

/** Every part of an index. */
export const INDEX_PARTS: readonly IndexPart[] = [
  ...FIXED_COLUMNS.map(([name]) => name),
  ...(['fields', 'columns', 'columnTypes'] as const),
];

/** The column values of samples of which only the positions are known. */
export function unknownColumns(rows: number): Pick<ShardIndex, OptionalName> {
  const columns = FIXED_COLUMNS.flatMap(([name, { absent }]) => (absent === undefined ? [] : [[name, absent(rows)]]));
  return Object.fromEntries(columns) as Pick<ShardIndex, OptionalName>;
}

/** Rows `first` to `end` of an index. Numbers share its memory. */
export function rowsOfIndex(index: ShardIndex, first: number, end: number): ShardIndex {
  const cut = <Values>(values: Values): Values =>
    (Array.isArray(values) ? values.slice(first, end) : (values as Uint8Array).subarray(first, end)) as Values;
  const cutAll = <Columns extends object>(columns: Columns): Columns =>
    Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, cut(values)])) as Columns;
  const fixed = Object.fromEntries(FIXED_COLUMNS.map(([name]) => [name, cut(index[name])])) as Pick<
    ShardIndex,
    (typeof FIXED_COLUMNS)[number][0]
  >;
  return {
    ...fixed,
    samples: end - first,
    fields: new Map(Array.from(index.fields, ([name, field]) => [name, cutAll<FieldColumns>(field)])),
    columns: new Map(Array.from(index.columns, ([name, values]) => [name, cut(values)])),
    ...(index.columnTypes && { columnTypes: index.columnTypes }),
  };
}
