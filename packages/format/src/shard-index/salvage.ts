import type { ColumnShape, ParquetFile } from '../parquet/parquet.js';
import type { ColumnType } from '../sample/label-column.js';
import {
  type ColumnNames,
  FIELD_COLUMNS,
  FIXED_COLUMNS,
  type FixedName,
  spread,
  takeLabels,
  takePart,
  values,
} from './columns.js';
import type { FieldColumns, ShardIndex } from './shard-index.js';

/** The intact parts of an index that has changed. A missing part is lost. */
export interface SalvagedIndex extends Partial<Pick<ShardIndex, FixedName>>, Pick<ShardIndex, 'samples' | 'columns'> {
  readonly fields: ReadonlyMap<string, SalvagedField>;
  /** Types of all label columns, including lost ones. */
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
}

/** The intact columns of a field. */
export interface SalvagedField extends Partial<FieldColumns> {
  /** 1 if a sample has the field. Each column of a field shows this, so it is absent only if none of them is left. */
  readonly present?: Uint8Array;
  /** Absent if it is lost; zeros if no value of the shard is a msgpack value. */
  readonly msgpack?: Uint8Array;
}

/** A complete index in the form of a salvaged one. */
export function asSalvaged(index: ShardIndex, columnTypes: ReadonlyMap<string, ColumnType>): SalvagedIndex {
  const fields = new Map<string, SalvagedField>();
  for (const [name, columns] of index.fields) {
    const present = Uint8Array.from(columns.offset, (offset) => (offset < 0 ? 0 : 1));
    fields.set(name, { msgpack: new Uint8Array(index.samples), ...columns, present });
  }
  return { ...index, fields, columnTypes };
}

/**
 * Takes the columns that are proven to be unchanged; null if the footer is not proven, so that a column could be
 * confused with another one.
 */
export function salvageColumns(file: ParquetFile, names: ColumnNames): SalvagedIndex | null {
  const shapes = file.provenColumns();
  if (shapes === null || !areOfIndex(shapes, names)) return null;
  const proven: ParquetFile = { ...file, read: (name) => orUndefined(() => file.readProven(name)) };
  const parts = FIXED_COLUMNS.map(([part]) => [part, orUndefined(() => takePart(proven, part, names))]);
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
  const fixed = (isBehindFields: boolean) =>
    FIXED_COLUMNS.filter(([name, column]) => {
      return (column.isBehindFields ?? false) === isBehindFields && (column.absent === undefined || stored.has(name));
    }).map(([name, { type }]) => shapeText({ name, type, nullable: false }));
  const ofField = (field: string) =>
    FIELD_COLUMNS.filter(([part, { isOptional }]) => !isOptional || stored.has(`${field}.${part}`)).map(
      ([part, { type }]) => shapeText({ name: `${field}.${part}`, type, nullable: true }),
    );
  const typeOf = new Map(shapes.map(({ name, type }) => [name, type]));
  const expected = [
    ...fixed(false),
    ...fields.flatMap(ofField),
    ...fixed(true),
    ...columns.map((name) => shapeText({ name, type: typeOf.get(name) ?? 'string', nullable: true })),
  ];
  return found.length === expected.length && found.every((text, i) => text === expected[i]);
}

function shapeText({ name, type, nullable }: ColumnShape): string {
  return JSON.stringify([name, type, nullable]);
}

function salvageField(file: ParquetFile, field: string): SalvagedField {
  const rows = file.rows;
  let present: Uint8Array | undefined;
  const found: Record<string, Float64Array | Uint32Array | Uint8Array> = {};
  for (const [part, { type, lacking }] of FIELD_COLUMNS) {
    const column = orUndefined(() => file.read(`${field}.${part}`));
    const stored: Float64Array | Uint32Array | Uint8Array | undefined =
      column && orUndefined(() => values(column, type));
    if (column === undefined || stored === undefined) continue;
    present ??= column.present ?? new Uint8Array(rows).fill(1);
    found[part] = spread(column, stored, rows, lacking);
  }
  // If the column does not exist, no value is a msgpack value; if it is lost, this is unknown.
  if (file.typeOf(`${field}.msgpack`) === undefined) found.msgpack = new Uint8Array(rows);
  return { ...found, ...(present && { present }) };
}

function orUndefined<T>(take: () => T): T | undefined {
  try {
    return take();
  } catch {
    return undefined;
  }
}
