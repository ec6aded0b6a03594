import { type FieldColumns, imageColumn, type LoadedIndex } from '@shardtool/format';

const kept = new WeakMap<LoadedIndex, Map<string, FieldColumns>>();

/** {@link imageColumn}, cached for each index and field, because every row requests it. */
export function keptImageColumn(index: LoadedIndex, image: string | undefined): FieldColumns {
  const name = image ?? '';
  let columns = kept.get(index);
  if (columns === undefined) {
    columns = new Map();
    kept.set(index, columns);
  }
  let column = columns.get(name);
  if (column === undefined) {
    // A plain object is faster than one whose properties are decoded later.
    column = { ...imageColumn(index, image) };
    columns.set(name, column);
  }
  return column;
}
