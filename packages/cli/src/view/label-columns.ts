/** Columns of any type in typed arrays, filled shard by shard: what a sample takes is bounded whatever stands in it. */
import type { ColumnValue } from '@shardtool/format';

/** NaN where a sample has no value. */
export interface NumberColumn {
  readonly kind: 'number';
  readonly values: Float64Array;
}

/** -1 where a sample has no value. */
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
/** Of a text so many bytes are kept. */
const TEXT_BYTES = 256;

/** One text a row in one buffer, as UTF-8 cut to {@link TEXT_BYTES}. */
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
    // Writes whole characters alone.
    this.#ends[++this.#rows] = at + this.#bytes.write(text, at, TEXT_BYTES, 'utf8');
  }

  get(row: number): string {
    return this.#bytes.toString('utf8', this.#ends[row]!, this.#ends[row + 1]!);
  }

  /** By code points. */
  compare(a: number, b: number): number {
    const [from, to, otherFrom, otherTo] = [this.#ends[a]!, this.#ends[a + 1]!, this.#ends[b]!, this.#ends[b + 1]!];
    return this.#bytes.compare(this.#bytes, otherFrom, otherTo, from, to);
  }
}

/** Takes the values of one column, row after row, and finds out what kind of column it is. */
export class ColumnBuilder {
  readonly #rows: number;
  #column: TableColumn | null = null;
  /** Numbers of names while it is a category. */
  readonly #codes = new Map<string, number>();
  #next = 0;

  constructor(rows: number) {
    this.#rows = rows;
  }

  /** The column; null where no row has a value. Rows behind the last have none. */
  finish(): TableColumn | null {
    this.skipTo(this.#rows);
    return this.#column;
  }

  /** Rows up to this one have no value. */
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
    // Where shards disagree about the type, all of it is text.
    if (column.kind === 'number' && typeof value !== 'number') column = this.#named(column, row);
    this.#column = column.kind === 'number' ? column : this.#withText(column, row, String(value));
    if (column.kind === 'number') column.values[row] = value as number;
  }

  /** The column with one text more, which may be one too many for a category. */
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

  /** Whether there was room for another name. */
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

/** The first rows of a category column as texts. */
function textsOf({ codes, names }: CategoryColumn, rows: number, first: number): TextColumn {
  const texts = new Texts(rows);
  for (let row = 0; row < first; row++) texts.push(names[codes[row]!] ?? '');
  return { kind: 'text', texts };
}
