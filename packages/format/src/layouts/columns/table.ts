import type { ColumnType, ColumnValue } from '../../sample/label-column.js';
import type { FieldSize } from '../../sample/sample-check.js';
import { whyUnsafe } from '../../sample/sample-name.js';
import type { FieldPosition, SamplePosition } from '../layout.js';
import { isClass } from './value-columns.js';

/**
 * The columns of shards for software that works with tables: every sample has a value, or null, in every column. The
 * role of each column is fixed before the first shard and stored in each shard, so that keys, fields and label columns
 * can be restored from the shard alone.
 */
export interface Table {
  readonly columns: readonly TableColumn[];
  /** Names of the classes in the order of their numbers; empty if they are unknown. */
  readonly classes: readonly string[];
}

export interface TableColumn {
  readonly name: string;
  readonly holds: ColumnContent;
  /** The field or the label column that it stores. '' for the image if samples store it under several names: see `ending`. */
  readonly of: string;
  /** Whether some samples have no value in it. */
  readonly isOptional: boolean;
}

/**
 * The content of a column: the key; the class number; the image of a sample, or a further one; bytes, text or JSON of a
 * field; the name of the field that is the image (`ending`); which fields a sample lacks, if nothing else shows
 * it (`missing`, JSON); or the values of a label column.
 */
export type ColumnContent = (typeof FIELD_CONTENTS)[number] | (typeof VALUE_CONTENTS)[number];

const FIELD_CONTENTS = ['image', 'bytes', 'text', 'json'] as const;
const VALUE_CONTENTS = ['key', 'class', 'ending', 'missing', 'string', 'int', 'double', 'bool'] as const;

/** The names that a layout gives to the standard columns. */
export interface TableNames {
  readonly image: string;
  readonly cls: string;
}

/** The name that webdataset uses in its samples. */
export const KEY_COLUMN = '__key__';
/** The field that is the image, if samples store it under several names. */
export const EXTENSION_COLUMN = '__ending__';
/** The key under which shards store the result of {@link encodeTable}. */
export const TABLE_MARK = 'shardtool';

/** The values of a sample other than its payloads. */
export interface SampleValues {
  /** -1 for none. */
  readonly cls: number;
  label(name: string): ColumnValue;
}

export function isField({ holds }: TableColumn): boolean {
  return (FIELD_CONTENTS as readonly string[]).includes(holds);
}

/** The type of a label column; undefined for other columns. */
function labelTypeOf({ holds }: TableColumn): ColumnType | undefined {
  return holds === 'string' || holds === 'int' || holds === 'double' || holds === 'bool' ? holds : undefined;
}

/** The content of a sample in a column: a payload, by its number among the fields; a value; or nothing. */
export type Cell = { readonly field: number } | { readonly value: Exclude<ColumnValue, null> } | null;

/** Lays samples out in the columns of a table. */
export class TableRow {
  readonly #table: Table;
  readonly #columnOf = new Map<string, number>();
  readonly #image: number;

  constructor(table: Table) {
    this.#table = table;
    this.#image = table.columns.findIndex(({ holds, of }) => holds === 'image' && of === '');
    for (const [number, column] of table.columns.entries()) {
      if (isField(column) && column.of !== '') this.#columnOf.set(column.of, number);
    }
  }

  /** One for each column. A field without a column of its name is the image. */
  cells(key: string, fields: readonly FieldSize[], values: SampleValues): Cell[] {
    const cells: Cell[] = this.#table.columns.map((column) => valueIn(column, key, values));
    for (const [field, { name }] of fields.entries()) {
      const number = this.#columnOf.get(name) ?? this.#image;
      if (number === -1 || cells[number] !== null) throw new Error(`There is no column for the field "${name}".`);
      cells[number] = { field };
      if (number !== this.#image) continue;
      const ending = this.#table.columns.findIndex(({ holds }) => holds === 'ending');
      cells[ending] = { value: name };
    }
    return cells;
  }
}

function valueIn(column: TableColumn, key: string, values: SampleValues): Cell {
  if (column.holds === 'key') return { value: key };
  if (column.holds === 'class') return { value: values.cls };
  const value = labelTypeOf(column) === undefined ? null : values.label(column.of);
  return value === null ? null : { value };
}

/** The columns in the form that shards store, without the classes. */
export function encodeTable({ columns }: Table): string {
  return JSON.stringify({ version: 1, columns });
}

/**
 * The inverse of {@link encodeTable}, by the names of the columns; null for anything else, including names that would
 * lead out of a folder.
 */
export function decodeTable(text: unknown): ReadonlyMap<string, TableColumn> | null {
  try {
    const { version, columns } =
      typeof text === 'string' ? JSON.parse(text) : (text as { version: 1; columns: unknown });
    if (version !== 1 || !Array.isArray(columns) || !columns.every(isColumn)) return null;
    const byName = new Map(columns.map((column: TableColumn) => [column.name, column]));
    return byName.size === columns.length ? byName : null;
  } catch {
    return null;
  }
}

function isColumn(column: Partial<TableColumn>): column is TableColumn {
  const { name, holds, of, isOptional } = column;
  const isKnown = ([...FIELD_CONTENTS, ...VALUE_CONTENTS] as readonly unknown[]).includes(holds);
  if (!isKnown || typeof name !== 'string' || typeof of !== 'string' || typeof isOptional !== 'boolean') return false;
  return of === '' || !isField(column as TableColumn) || (whyUnsafe(of) === null && !of.includes('/'));
}

/** A sample of a shard that shardtool wrote, assembled from its columns. */
export class SampleOfTable {
  #key: string | null = null;
  #cls = -1;
  #ending: string | null = null;
  #missing: readonly string[] = [];
  readonly #labels = new Map<string, ColumnValue>();
  readonly #fields: { readonly column: TableColumn; readonly offset: number; readonly bytes: number }[] = [];

  /** Sets the payload of a field, by its position. */
  field(column: TableColumn, place: { readonly offset: number; readonly bytes: number }): void {
    this.#fields.push({ column, ...place });
  }

  /** Sets the value of any other column; null for none. */
  value({ holds, of }: TableColumn, value: ColumnValue): void {
    if (holds === 'key') this.#key = String(value);
    else if (holds === 'ending') this.#ending = value === null ? null : String(value);
    else if (holds === 'missing') this.#missing = namesIn(value);
    else if (holds === 'class') this.#cls = isClass(value) ? value : -1;
    else this.#labels.set(of, holds === 'bool' && typeof value === 'number' ? value !== 0 : value);
  }

  /** `refuse` builds the error for a problem. */
  read(refuse: (why: string) => Error): Omit<SamplePosition, 'offset' | 'bytes'> {
    const key = this.#key;
    if (key === null) throw refuse('has no key');
    const unsafe = whyUnsafe(key);
    if (unsafe !== null) throw refuse(`has a key that ${unsafe}`);
    const fields: FieldPosition[] = [];
    for (const { column, ...place } of this.#fields) {
      if (this.#missing.includes(column.name)) continue;
      const name = column.of === '' ? this.#ending : column.of;
      if (name === null || whyUnsafe(name) !== null || name.includes('/')) throw refuse('has an image without a name');
      if (fields.some((field) => field.name === name)) throw refuse(`has the field "${name}" twice`);
      fields.push({ name, ...place });
    }
    return { key, cls: this.#cls, labels: this.#labels, fields };
  }
}

function namesIn(value: ColumnValue): string[] {
  try {
    const names = JSON.parse(String(value));
    return Array.isArray(names) ? names.map(String) : [];
  } catch {
    return [];
  }
}
