import { LabelsError } from '@shardtool/base';
import type { StorageOptions } from '@shardtool/storage';
import { columnsOf } from '../layouts/parquet/columns.js';
import { codecsOf, parseFooter, readFooterBytes } from '../layouts/parquet/footer.js';
import { readLabels } from '../layouts/parquet/labels.js';
import { loadCodecs } from '../layouts/parquet/pages/codecs.js';
import type { ColumnValue } from '../sample/label-column.js';
import { openSource } from '../source.js';
import type { LabelRow, LabelRows } from './label-rows.js';
import type { LabelTable } from './label-table.js';

/**
 * Reads the rows of a Parquet file of other software as labels (img2dataset writes one next to each tar). The first of
 * the `named` columns that the file has identifies the sample of each row. All other columns except those of bytes
 * become label columns. No column is read as the class. Throws {@link LabelsError} if no such column exists or a row
 * has no value in it, and the errors of a damaged file.
 */
export async function readParquetLabels<Name extends string>(
  location: string,
  named: readonly Name[],
  storage?: StorageOptions,
): Promise<LabelTable<Name>> {
  const values = new Map<string, ColumnValue[]>();
  let rows = 0;
  for await (const group of readParquetRows(location, storage)) {
    for (const [name, part] of group.columns) {
      const column = values.get(name) ?? new Array<ColumnValue>(rows).fill(null);
      for (const value of part) column.push(value);
      values.set(name, column);
    }
    rows += group.rows;
    for (const column of values.values()) while (column.length < rows) column.push(null);
  }
  const by = named.find((name) => values.has(idColumn(name)));
  if (by === undefined) throw noId(location, named, values);
  const id = values.get(idColumn(by))!.map((value, row) => {
    if (value === null || value === '')
      throw new LabelsError({ path: location }, `${location}: row ${row} has no ${by}.`);
    return String(value);
  });
  values.delete(idColumn(by));
  return { by, id, line: Uint32Array.from(id, (_, row) => row), cls: null, columns: values };
}

/** Yields the rows of {@link readParquetLabels}, one row group at a time. Throws the same errors. */
export async function* readParquetLabelRows<Name extends string>(
  location: string,
  named: readonly Name[],
  storage?: StorageOptions,
): AsyncGenerator<LabelRows<Name>> {
  let first = 0;
  for await (const { rows: count, columns } of readParquetRows(location, storage)) {
    const by = named.find((name) => columns.has(idColumn(name)));
    if (by === undefined) throw noId(location, named, columns);
    const names = Array.from(columns.keys(), (name) => (name === idColumn(by) ? by : name));
    const lists = [...columns.values()];
    const ids = columns.get(idColumn(by))!;
    const rows: LabelRow[] = [];
    for (let row = 0; row < count; row++) {
      const id = ids[row] ?? '';
      const line = first + row;
      if (id === '') throw new LabelsError({ path: location }, `${location}: row ${line} has no ${by}.`);
      rows.push({ id: String(id), line, names, values: lists.map((values) => values[row] ?? null) });
    }
    yield { by, isJson: true, rows };
    first += count;
  }
}

/**
 * Yields the columns of a Parquet file of other software, one row group at a time, except columns of bytes. A column with the
 * name `key` is returned as `key_`. Throws the errors of a damaged file.
 */
export async function* readParquetRows(
  location: string,
  storage?: StorageOptions,
): AsyncGenerator<{ readonly rows: number; readonly columns: ReadonlyMap<string, readonly ColumnValue[]> }> {
  const source = await openSource(location, undefined, storage);
  try {
    const footer = parseFooter(await readFooterBytes(source), location, source.size);
    await loadCodecs(codecsOf(footer));
    // No column of the file is the class of an image here.
    const columns = { ...columnsOf(footer, location), cls: undefined };
    for (const [group, { num_rows }] of footer.row_groups.entries()) {
      if (Number(num_rows) === 0) continue;
      yield { rows: Number(num_rows), columns: (await readLabels(source, footer, group, columns)).columns };
    }
  } finally {
    await source.close();
  }
}

/** `key` is the name of a column in the index, so the label column gets another name. */
function idColumn(name: string): string {
  return name === 'key' ? 'key_' : name;
}

function noId(location: string, named: readonly string[], values: ReadonlyMap<string, unknown>): LabelsError {
  const [names, there] = [named.map((name) => `"${name}"`).join(' or '), [...values.keys()].join(', ')];
  return new LabelsError(
    { path: location },
    `${location} has the columns ${there}, but no column ${names}; rename the column that identifies the images.`,
  );
}
