import { DamagedShardError, UnsupportedShardError } from '@shardtool/base';
import { imageKindOf, SIGNATURE_BYTES } from '../../image/kinds.js';
import type { ColumnValue } from '../../sample/label-column.js';
import type { FileWindow } from '../bytes/file-window.js';
import type { FieldPosition, SamplePosition } from '../layout.js';
import { classColumnOf, fieldOfColumn, imageColumnOf, labelOfColumn } from './column-names.js';

/** A column of shards in which a sample consists of the values of all columns, in sequence. */
export interface ValueColumn {
  readonly name: string;
  readonly role: ColumnRole;
}

/** The bytes of a field with an extension; or a single value. */
export type ColumnRole =
  | { readonly kind: 'bytes'; readonly extension: string }
  | { readonly kind: 'value'; value(bytes: DataView): ColumnValue };

/** A value of a column, by its position. */
export interface StoredValue<Column extends ValueColumn = ValueColumn> {
  readonly column: Column;
  readonly offset: number;
  readonly bytes: number;
}

/** Maximum length of a number that is stored as text. */
const MOST_VALUE_BYTES = 1 << 16;

/** Builds samples from the values of their columns, by the names and contents of the columns. */
export class ColumnReader {
  readonly #window: FileWindow;
  readonly #shard: string;
  readonly #cls: string | undefined;
  readonly #image: string | undefined;
  readonly #fields = new Map<string, string>();
  readonly #columnOf = new Map<string, string>();

  /** `cls` is the class column; if omitted, it is found by its name. */
  constructor(window: FileWindow, shard: string, columns: readonly ValueColumn[], cls?: string) {
    this.#window = window;
    this.#shard = shard;
    this.#cls = cls ?? classColumnOf(columns.filter(({ role }) => role.kind === 'value').map(({ name }) => name));
    const isOpen = ({ role }: ValueColumn) => role.kind === 'bytes' && role.extension === 'bin';
    this.#image = imageColumnOf(columns.filter(isOpen).map(({ name }) => name));
  }

  /** Throws {@link DamagedShardError}, {@link UnsupportedShardError}, FileError. */
  async sample(
    key: string,
    values: readonly StoredValue[],
  ): Promise<Required<Pick<SamplePosition, 'fields' | 'cls' | 'labels'>>> {
    const fields: FieldPosition[] = [];
    const labels = new Map<string, ColumnValue>();
    let cls = -1;
    for (const stored of values) {
      const { column, offset, bytes } = stored;
      if (column.role.kind === 'bytes') {
        const peek = Math.min(bytes, SIGNATURE_BYTES);
        const first = peek === 0 ? new Uint8Array(0) : (await this.#window.at(offset, peek)).subarray(0, peek);
        fields.push({ name: this.#field(column.name, first, column.role.extension), offset, bytes });
        continue;
      }
      const value = await this.value(key, stored);
      if (column.name === this.#cls && isClass(value)) cls = value;
      else labels.set(labelOfColumn(column.name), value);
    }
    return { fields, cls, labels };
  }

  /** The single value of a column. */
  async value(
    key: string,
    { column: { name, role }, offset, bytes }: StoredValue,
    most = MOST_VALUE_BYTES,
  ): Promise<ColumnValue> {
    if (bytes > most) throw damaged(this.#shard, offset, `column "${name}" of sample ${key} is too long for a number`);
    const stored = bytes === 0 ? Buffer.alloc(0) : (await this.#window.at(offset, bytes)).subarray(0, bytes);
    try {
      return (role as Extract<ColumnRole, { kind: 'value' }>).value(
        new DataView(stored.buffer, stored.byteOffset, stored.byteLength),
      );
    } catch {
      throw damaged(this.#shard, offset, `column "${name}" of sample ${key} is not a value of its encoding`);
    }
  }

  #field(name: string, first: Uint8Array, extension: string): string {
    const kind = imageKindOf(first);
    const known = this.#fields.get(`${name} ${kind}`);
    if (known !== undefined) return known;
    const field = fieldOfColumn(name, first, name === this.#image, extension);
    this.#fields.set(`${name} ${kind}`, field);
    const other = this.#columnOf.get(field);
    if (other !== undefined && other !== name)
      throw unsupported(
        this.#shard,
        `its columns "${other}" and "${name}" would both be the field "${field}"; rename one of them`,
      );
    this.#columnOf.set(field, name);
    return field;
  }
}

/** Whether a value is the number of a class, or -1, which stands for no class. */
export function isClass(value: ColumnValue): value is number {
  return Number.isInteger(value) && (value as number) >= -1 && (value as number) <= 0x7fffffff;
}

export function damaged(shard: string, offset: number, what: string): DamagedShardError {
  return new DamagedShardError({ shard, offset }, `${shard}: ${what}; it is damaged: fetch or write it again.`);
}

export function unsupported(shard: string, what: string): UnsupportedShardError {
  return new UnsupportedShardError({ shard }, `${shard}: ${what}.`);
}
