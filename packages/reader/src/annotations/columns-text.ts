import type { ColumnValue } from '@shardtool/format';

/** The objects that label columns say, as JSON: a text as it stands, or one object of a number a column. */
export function columnsText(
  columns: ReadonlyMap<string, readonly ColumnValue[]>,
  names: readonly string[] | string,
  row: number,
): string {
  const inColumn = (name: string) => columns.get(name)?.[row] ?? null;
  const values = typeof names === 'string' ? [inColumn(names)] : names.map(inColumn);
  if (values.every((value) => value === null)) return '[]';
  if (typeof names === 'string' && typeof values[0] === 'string') return values[0];
  return JSON.stringify([values]);
}
