import { jsonText } from '../sample/exact-json.js';
import type { ColumnValue } from '../sample/label-column.js';
import { OverlayError } from './overlay-error.js';
import { rowBits, rowsOfBits } from './row-bits.js';

/**
 * Changes of one overlay in one shard. Rows are those of the shard's own index, in ascending order within each list.
 */
export interface ShardChanges {
  /** Excluded rows, 4 bytes per sample. */
  readonly excluded: Uint32Array;
  /** Rows with another class, 8 bytes per sample. */
  readonly clsRows: Uint32Array;
  readonly cls: Int32Array;
  readonly columns: ReadonlyMap<string, { readonly rows: Uint32Array; readonly values: readonly ColumnValue[] }>;
}

/** Values of some rows, as the line has them: each value once, and the number of the value of each row. */
interface PackedColumn {
  /** The rows, as {@link rowBits}. */
  readonly rows: string;
  readonly values: readonly ColumnValue[];
  /** One number of a value per row, as {@link packedNumbers}. */
  readonly codes: string;
}

interface PackedLine {
  readonly changes: number;
  readonly exclude?: string;
  readonly cls?: PackedColumn;
  readonly columns?: readonly (readonly [name: string, column: PackedColumn])[];
}

const BEGIN = '{"changes":';

/** All changes of an overlay in one shard as one line, which is parsed when it is needed: some 2 bytes per row and class. */
export class PackedChanges {
  /** The number of the shard. */
  readonly changes: number;
  readonly #line: Uint8Array;

  private constructor(shard: number, line: Uint8Array) {
    this.changes = shard;
    this.#line = line;
  }

  /** Encodes the changes in a shard of `samples` rows. Equal changes give equal bytes. */
  static of(shard: number, samples: number, { excluded, clsRows, cls, columns }: ShardChanges): PackedChanges {
    const line: PackedLine = {
      changes: shard,
      ...(excluded.length > 0 && { exclude: bitsOf(samples, excluded) }),
      ...(clsRows.length > 0 && { cls: packed(samples, clsRows, Array.from(cls)) }),
      ...(columns.size > 0 && {
        columns: Array.from(columns, ([name, { rows, values }]) => [name, packed(samples, rows, values)] as const),
      }),
    };
    return new PackedChanges(shard, Buffer.from(jsonText(line)));
  }

  /** Whether a line of an overlay holds packed changes. */
  static isLine(line: Buffer): boolean {
    return line.toString('latin1', 0, BEGIN.length) === BEGIN;
  }

  /** `line`: a line for which {@link PackedChanges.isLine} is true. */
  static parse(line: Buffer): PackedChanges {
    return new PackedChanges(Number.parseInt(line.toString('latin1', BEGIN.length, BEGIN.length + 16), 10), line);
  }

  /** The line of the file, without a line feed. */
  get text(): string {
    return textOf(this.#line);
  }

  /** The same changes of the shard with another number. */
  ofShard(shard: number): PackedChanges {
    return new PackedChanges(shard, Buffer.from(this.text.replace(/^\{"changes":\d+/, `${BEGIN}${shard}`)));
  }

  /** Columns that are set, with the values that occur in them. */
  columnValues(): readonly (readonly [name: string, values: readonly ColumnValue[]])[] {
    return (this.#parsed().columns ?? []).map(([name, { values }]) => [name, values]);
  }

  /** The changes in a shard of `samples` rows. Throws {@link OverlayError} if the line does not fit the shard. */
  unpack(samples: number): ShardChanges {
    const { exclude, cls, columns = [] } = this.#parsed();
    const changed = cls === undefined ? null : this.#unpacked(samples, cls);
    return {
      excluded: exclude === undefined ? new Uint32Array(0) : this.#rows(samples, exclude),
      clsRows: changed?.rows ?? new Uint32Array(0),
      cls: Int32Array.from((changed?.values ?? []) as number[]),
      columns: new Map(columns.map(([name, column]) => [name, this.#unpacked(samples, column)])),
    };
  }

  #parsed(): PackedLine {
    return JSON.parse(this.text);
  }

  #rows(samples: number, base64: string): Uint32Array {
    const bits = Buffer.from(base64, 'base64');
    const rows = rowsOfBits(bits);
    if (bits.length !== Math.ceil(samples / 8) || (rows.at(-1) ?? 0) >= samples) throw this.#wrong();
    return rows;
  }

  #unpacked(samples: number, { rows: base64, values, codes }: PackedColumn) {
    const rows = this.#rows(samples, base64);
    const numbers = unpackedNumbers(Buffer.from(codes, 'base64'), rows.length, widthOf(values.length));
    return {
      rows,
      values: Array.from(numbers, (number) => {
        const value = values[number];
        if (value === undefined) throw this.#wrong();
        return value;
      }),
    };
  }

  #wrong(): OverlayError {
    return new OverlayError(
      { shard: String(this.changes) },
      `An overlay has a line that does not fit shard ${this.changes} of the dataset: create the overlay again.`,
    );
  }
}

function textOf(line: Uint8Array): string {
  return Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString('utf8');
}

function bitsOf(samples: number, rows: Uint32Array): string {
  const isChosen = new Uint8Array(samples);
  for (const row of rows) isChosen[row] = 1;
  return rowBits(samples, (row) => isChosen[row] === 1);
}

function packed(samples: number, rows: Uint32Array, values: readonly ColumnValue[]): PackedColumn {
  const numbers = new Map<ColumnValue, number>();
  const codes = values.map((value) => {
    const known = numbers.get(value);
    if (known !== undefined) return known;
    numbers.set(value, numbers.size);
    return numbers.size - 1;
  });
  return {
    rows: bitsOf(samples, rows),
    values: [...numbers.keys()],
    codes: packedNumbers(codes, widthOf(numbers.size)),
  };
}

/** Number of bits of the numbers below `count`. */
function widthOf(count: number): number {
  return count <= 1 ? 0 : 32 - Math.clz32(count - 1);
}

/** Numbers of `width` bits in base64: bit b of number n is bit n * width + b, counted from the lowest bit of the first byte. */
function packedNumbers(numbers: readonly number[], width: number): string {
  const bytes = new Uint8Array(Math.ceil((numbers.length * width) / 8));
  for (let i = 0; i < numbers.length; i++) {
    for (let bit = 0, to = i * width; bit < width; bit++, to++) {
      bytes[to >> 3]! |= ((numbers[i]! >> bit) & 1) << (to & 7);
    }
  }
  return Buffer.from(bytes).toString('base64');
}

/** The inverse of {@link packedNumbers}. Numbers beyond the end of the bytes are 0. */
function unpackedNumbers(bytes: Uint8Array, count: number, width: number): Uint32Array {
  const numbers = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    let number = 0;
    for (let bit = 0, from = i * width; bit < width; bit++, from++) {
      number |= (((bytes[from >> 3] ?? 0) >> (from & 7)) & 1) << bit;
    }
    numbers[i] = number;
  }
  return numbers;
}
