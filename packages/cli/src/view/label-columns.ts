/**
 * Columns of any type as typed arrays, which are filled shard by shard. Memory per sample is bounded, whatever the
 * values are.
 */
import type { ColumnValue } from '@shardtool/format';

/** NaN if a sample has no value. */
export interface NumberColumn {
  readonly kind: 'number';
  readonly values: Float64Array;
}

/** -1 if a sample has no value. */
export interface CategoryColumn {
  readonly kind: 'category';
  readonly codes: Int32Array;
  readonly names: readonly string[];
}

export interface TextColumn {
  readonly kind: 'text';
  readonly texts: Texts;
}

export type TableColumn = NumberColumn | CategoryColumn | TextColumn;

/** A column with more different values has no histogram. */
const MOST_NAMES = 4096;
/** Maximum number of bytes of a text that are kept. */
const TEXT_BYTES = 256;

/** One text per row in one buffer, as UTF-8, cut to {@link TEXT_BYTES}. */
export class Texts {
  readonly #ends: Float64Array;
  #bytes: Buffer;
  #rows = 0;

  constructor(rows: number) {
    this.#ends = new Float64Array(rows + 1);
    this.#bytes = Buffer.allocUnsafe(Math.max(1024, rows * 16));
  }

  push(text: string): void {
    const at = this.#ends[this.#rows]!;
    if (this.#bytes.length - at < TEXT_BYTES) {
      this.#bytes = Buffer.concat([this.#bytes.subarray(0, at)], 2 * this.#bytes.length + TEXT_BYTES);
    }
    // `write` writes only whole characters.
    this.#ends[++this.#rows] = at + this.#bytes.write(text, at, TEXT_BYTES, 'utf8');
  }

  get(row: number): string {
    return this.#bytes.toString('utf8', this.#ends[row]!, this.#ends[row + 1]!);
  }

  /** Compares two rows by code points. */
  compare(a: number, b: number): number {
    const [from, to, otherFrom, otherTo] = [this.#ends[a]!, this.#ends[a + 1]!, this.#ends[b]!, this.#ends[b + 1]!];
    return this.#bytes.compare(this.#bytes, otherFrom, otherTo, from, to);
  }
}

/** Collects the values of one column, row by row, and determines the kind of the column. */
export class ColumnBuilder {
  readonly #rows: number;
  #column: TableColumn | null = null;
  /** Codes by name, while the column is a category. */
  readonly #codes = new Map<string, number>();
  #next = 0;

  constructor(rows: number) {
    this.#rows = rows;
  }

  /** Returns the column, or null if no row has a value. Rows after the last one have no value. */
  finish(): TableColumn | null {
    this.skipTo(this.#rows);
    return this.#column;
  }

  /** Leaves all rows before `row` without a value. */
  skipTo(row: number): void {
    while (this.#next < row) this.push(null);
  }

  push(value: ColumnValue): void {
    const row = this.#next++;
    let column = this.#column;
    if (value === null) {
      if (column?.kind === 'text') column.texts.push('');
      return;
    }
    column ??= typeof value === 'number' ? numbers(this.#rows) : categories(this.#rows);
    // If shards disagree about the type, the whole column becomes text.
    if (column.kind === 'number' && typeof value !== 'number') column = this.#named(column, row);
    this.#column = column.kind === 'number' ? column : this.#withText(column, row, String(value));
    if (column.kind === 'number') column.values[row] = value as number;
  }

  /** Returns the column with one more text. It may exceed the number of names of a category. */
  #withText(column: CategoryColumn | TextColumn, row: number, text: string): CategoryColumn | TextColumn {
    if (column.kind === 'category' && this.#putName(column, row, text)) return column;
    const texts = column.kind === 'text' ? column : textsOf(column, this.#rows, row);
    texts.texts.push(text);
    return texts;
  }

  #named({ values }: NumberColumn, rows: number): CategoryColumn | TextColumn {
    let column: CategoryColumn | TextColumn = categories(this.#rows);
    for (let row = 0; row < rows; row++) {
      if (!Number.isNaN(values[row]!)) column = this.#withText(column, row, String(values[row]));
      else if (column.kind === 'text') column.texts.push('');
    }
    return column;
  }

  /** Returns false if the category has no room for another name. */
  #putName({ codes, names }: CategoryColumn, row: number, text: string): boolean {
    let code = this.#codes.get(text);
    if (code === undefined) {
      if (names.length === MOST_NAMES) return false;
      code = (names as string[]).push(text) - 1;
      this.#codes.set(text, code);
    }
    codes[row] = code;
    return true;
  }
}

function numbers(rows: number): NumberColumn {
  return { kind: 'number', values: new Float64Array(rows).fill(Number.NaN) };
}

function categories(rows: number): CategoryColumn {
  return { kind: 'category', codes: new Int32Array(rows).fill(-1), names: [] };
}

/** Returns the first rows of a category column as texts. */
function textsOf({ codes, names }: CategoryColumn, rows: number, first: number): TextColumn {
  const texts = new Texts(rows);
  for (let row = 0; row < first; row++) texts.push(names[codes[row]!] ?? '');
  return { kind: 'text', texts };
}
