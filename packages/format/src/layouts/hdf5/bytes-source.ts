import type { ColumnValue } from '../../sample/label-column.js';
import type { Source } from '../../source.js';
import { type ImageSource, sampleRow, stemOf } from '../array-images.js';
import { PieceSource } from '../bytes/piece-source.js';
import { fieldOfColumn } from '../columns/column-names.js';
import type { SamplePosition } from '../layout.js';
import { NumberList } from '../number-list.js';
import type { HdfDataset } from './file.js';

/** Keys, classes and labels of the images of a file, by row. */
export interface ImageRows {
  /** Class numbers; if empty, no image has a class. */
  readonly cls: ArrayLike<number>;
  readonly columns: ReadonlyMap<string, ArrayLike<ColumnValue>>;
  readonly keys?: readonly string[];
}

/** How many bytes are read at once. A larger value is read alone. */
const PIECE_BYTES = 1 << 20;
const MOST_ROWS = 1024;
const YIELDED = 1024;

/**
 * A dataset of values of variable length, presented as a contiguous file. A value's length is stored in the reference
 * to it, and the library gives it only together with the value, so all values are read once when the file is opened.
 * Owns `source`.
 */
export class BytesSource extends PieceSource implements ImageSource {
  readonly classes: readonly string[] = [];
  readonly count: number;
  readonly #starts: Float64Array;
  readonly #fields: readonly string[];
  readonly #fieldOf: Uint8Array;
  readonly #rows: ImageRows;

  static async of(source: Source, image: HdfDataset, rows: ImageRows): Promise<BytesSource> {
    const count = image.shape[0]!;
    const name = image.path.slice(image.path.lastIndexOf('/') + 1);
    const [starts, pieceRows, pieceStarts] = [new Float64Array(count + 1), new NumberList(), new NumberList()];
    const fields: string[] = [];
    const fieldOf = new Uint8Array(count);
    let end = 0;
    for (let first = 0; first < count; ) {
      // The number of values that should have this many bytes, judging by the values before them.
      const most = first === 0 ? 1 : Math.max(1, Math.floor((PIECE_BYTES * first) / Math.max(1, end)));
      const here = Math.min(most, MOST_ROWS, count - first);
      const values = (await image.read(first, here)) as readonly Uint8Array[];
      pieceRows.push(first);
      pieceStarts.push(end);
      for (let i = 0; i < here; i++) {
        const value = values[i]!;
        starts[first + i] = end;
        end += value.length;
        const field = fieldOfColumn(name, value, true, 'bin');
        if (!fields.includes(field)) fields.push(field);
        fieldOf[first + i] = fields.indexOf(field);
      }
      first += here;
    }
    starts[count] = end;
    pieceRows.push(count);
    pieceStarts.push(end);
    const firstRow = pieceRows.toArray();
    return new BytesSource(
      source,
      { count, starts, fields, fieldOf, rows, pieceStarts: pieceStarts.toArray() },
      (piece) => {
        const [from, to] = [firstRow[piece]!, firstRow[piece + 1]!];
        return image.read(from, to - from) as Promise<readonly Uint8Array[]>;
      },
    );
  }

  private constructor(
    source: Source,
    found: {
      readonly count: number;
      readonly starts: Float64Array;
      readonly fields: readonly string[];
      readonly fieldOf: Uint8Array;
      readonly rows: ImageRows;
      readonly pieceStarts: Float64Array;
    },
    read: (piece: number) => Promise<readonly Uint8Array[]>,
  ) {
    super(source, { starts: found.pieceStarts, load: async (piece) => Buffer.concat(await read(piece)) });
    this.count = found.count;
    this.#starts = found.starts;
    this.#fields = found.fields;
    this.#fieldOf = found.fieldOf;
    this.#rows = found.rows;
  }

  async *samples(): AsyncGenerator<readonly SamplePosition[]> {
    const stem = stemOf(this.location);
    for (let number = 0; number < this.count; ) {
      const found: SamplePosition[] = [];
      for (const end = Math.min(this.count, number + YIELDED); number < end; number++) {
        const offset = this.#starts[number]!;
        const bytes = this.#starts[number + 1]! - offset;
        const name = this.#fields[this.#fieldOf[number]!]!;
        found.push({ ...sampleRow(this.#rows, stem, number), offset, bytes, fields: [{ name, offset, bytes }] });
      }
      yield found;
    }
  }
}
