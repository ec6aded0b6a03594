import type { ColumnValue } from '@shardtool/format';

/**
 * The annotations of a sample from columns of the index, as JSON text. One column (`names` is a string) holds JSON, or
 * a value that becomes one object. A list of columns holds the numbers of one object. If a sample has no values, the
 * result is `[]`.
 */
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
