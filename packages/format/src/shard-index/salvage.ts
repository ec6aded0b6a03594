import type { Column, ColumnShape, ParquetFile } from '../parquet/parquet.js';
import type { ValueType } from '../parquet/values.js';
import { type ColumnNames, FIXED, OF_FIELD, spread, takeLabels, takePart, values } from './columns.js';
import type { ColumnType } from './label-column.js';
import type { FieldColumns, ShardIndex } from './shard-index.js';

/** What is left of an index that has changed. A part that is missing is lost. */
export interface SalvagedIndex
  extends Partial<Pick<ShardIndex, (typeof FIXED)[number]>>,
    Pick<ShardIndex, 'samples' | 'columns'> {
  readonly fields: ReadonlyMap<string, SalvagedField>;
  /** Of all label columns that there were, also of those that are lost. */
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
}

/** What is left of the columns of a field. */
export interface SalvagedField extends Partial<FieldColumns> {
  /** 1 where a sample has the field: each of its columns says that. Absent where none of them is left. */
  readonly present?: Uint8Array;
  /** Absent where it is lost; zeros where no value of the shard was one. */
  readonly msgpack?: Uint8Array;
}

/** A whole index as one of which nothing is lost. */
export function asSalvaged(index: ShardIndex, columnTypes: ReadonlyMap<string, ColumnType>): SalvagedIndex {
  const fields = new Map<string, SalvagedField>();
  for (const [name, columns] of index.fields) {
    const present = Uint8Array.from(columns.offset, (offset) => (offset < 0 ? 0 : 1));
    fields.set(name, { msgpack: new Uint8Array(index.samples), ...columns, present });
  }
  return { ...index, fields, columnTypes };
}

/**
 * Takes the columns that are proven to be as they were written; null where the footer is not, so that a column could
 * be taken for another one.
 */
export function salvageColumns(file: ParquetFile, names: ColumnNames): SalvagedIndex | null {
  const shapes = file.provenColumns();
  if (shapes === null || !areOfIndex(shapes, names)) return null;
  const proven: ParquetFile = { ...file, read: (name) => orUndefined(() => file.readProven(name)) };
  const parts = FIXED.map((part) => [part, orUndefined(() => takePart(proven, part, names))]);
  const known = parts.filter(([, values]) => values !== undefined);
  const fields = names.fields.map((name): [string, SalvagedField] => [name, salvageField(proven, name)]);
  const labels = names.columns.flatMap((name) => {
    const found = orUndefined(() => takeLabels(proven, name));
    return found === undefined ? [] : [[name, found] as const];
  });
  const columnTypes = takePart(file, 'columnTypes', names) as ReadonlyMap<string, ColumnType>;
  const { rows: samples } = file;
  return { samples, ...Object.fromEntries(known), fields: new Map(fields), columns: new Map(labels), columnTypes };
}

/** Whether these are the columns of an index with such fields and labels, in the order of {@link columnsOf}. */
function areOfIndex(shapes: readonly ColumnShape[], { fields, columns }: ColumnNames): boolean {
  const found = shapes.map(shapeText);
  const stored = new Set(shapes.map(({ name }) => name));
  const own = (name: (typeof FIXED)[number], type: ValueType) => shapeText({ name, type, nullable: false });
  const ofField = (field: string) =>
    OF_FIELD.filter((part) => part !== 'msgpack' || stored.has(`${field}.msgpack`)).map((part) =>
      shapeText({ name: `${field}.${part}`, type: FIELD_TYPE[part], nullable: true }),
    );
  const typeOf = new Map(shapes.map(({ name, type }) => [name, type]));
  const expected = [
    own('key', 'string'),
    own('source', 'string'),
    own('offset', 'int64'),
    own('bytes', 'int64'),
    ...fields.flatMap(ofField),
    own('width', 'int32'),
    own('height', 'int32'),
    own('orientation', 'int32'),
    own('cls', 'int32'),
    ...columns.map((name) => shapeText({ name, type: typeOf.get(name) ?? 'string', nullable: true })),
  ];
  return found.length === expected.length && found.every((text, i) => text === expected[i]);
}

const FIELD_TYPE: Readonly<Record<(typeof OF_FIELD)[number], ValueType>> = {
  offset: 'int64',
  bytes: 'int64',
  crc32: 'uint32',
  msgpack: 'bool',
};

function shapeText({ name, type, nullable }: ColumnShape): string {
  return JSON.stringify([name, type, nullable]);
}

function salvageField(file: ParquetFile, field: string): SalvagedField {
  const rows = file.rows;
  let present: Uint8Array | undefined;
  const takeProven = (part: (typeof OF_FIELD)[number]): Column | undefined => {
    const name = `${field}.${part}`;
    const found = orUndefined(() => {
      const column = file.read(name);
      if (column !== undefined) values(column, FIELD_TYPE[part]);
      return column;
    });
    if (found !== undefined) present ??= found.present ?? new Uint8Array(rows).fill(1);
    return found;
  };
  const [offset, bytes, crc32, msgpack] = OF_FIELD.map(takeProven);
  // Where there is no such column no value is one; where it is lost nobody knows.
  const flags = file.typeOf(`${field}.msgpack`) === undefined ? new Uint8Array(rows) : undefined;
  return {
    ...(offset && { offset: spread(offset, values(offset, 'int64'), rows, -1) }),
    ...(bytes && { bytes: spread(bytes, values(bytes, 'int64'), rows, 0) }),
    ...(crc32 && { crc32: spread(crc32, values(crc32, 'uint32'), rows, 0) }),
    ...(msgpack ? { msgpack: spread(msgpack, values(msgpack, 'bool'), rows, 0) } : flags && { msgpack: flags }),
    ...(present && { present }),
  };
}

function orUndefined<T>(take: () => T): T | undefined {
  try {
    return take();
  } catch {
    return undefined;
  }
}
