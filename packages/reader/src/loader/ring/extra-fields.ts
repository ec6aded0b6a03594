import type { NpyRow } from '@shardtool/format';
import { layOut } from './fields.js';
import { UNCHECKED } from './job.js';

/**
 * Further fields of a sample that workers need: further images and masks, which are decoded with it, fields for custom
 * steps, annotations, which may be columns of the index, and arrays that are stacked. The offsets of their bytes are written into shared memory
 * next to the ring of jobs, so that a job stays small.
 */
export interface ExtraField {
  readonly field: string;
  readonly kind: 'image' | 'mask' | 'field' | 'annotation' | 'columns' | 'array';
  /** For the kind `columns`: names of the columns, or the name of the column that contains JSON. */
  readonly columns?: readonly string[] | string | undefined;
  /** For the kind `array`: the dtype and shape of its rows, and the sample that they were taken from. */
  readonly array?: (NpyRow & { readonly shard: string; readonly key: string }) | undefined;
}

/** Position of the bytes of one extra field of a row in the arena. Texts of columns are in {@link ColumnTexts}. */
export interface Part {
  readonly offset: number;
  readonly bytes: number;
  /** Expected crc32 of the payload, or UNCHECKED. */
  readonly crc32: number;
  /** Whether the bytes are a msgpack value that represents the text of the field. */
  readonly msgpack: boolean;
}

/** The `offset` of a part that its sample lacks. */
const ABSENT = -1;

/** Layout of a part in the table: one entry per field. */
const { places, bytes: PART_BYTES } = layOut<keyof Part>({
  offset: 'float64',
  bytes: 'float64',
  crc32: 'float64',
  msgpack: 'float64',
});
const NUMBERS = PART_BYTES / 8;

/**
 * The parts of every row of every slot. The main thread writes the parts of a row before it publishes the row's job.
 */
export class PartTable {
  readonly buffer: SharedArrayBuffer;
  readonly #numbers: Float64Array;
  readonly #rows: number;
  readonly #parts: number;

  /** Uses new memory for `slots` slots of `rows` rows of `parts` parts, or the memory of another thread. */
  constructor(
    size: { readonly slots: number; readonly rows: number; readonly parts: number },
    buffer?: SharedArrayBuffer,
  ) {
    this.buffer = buffer ?? new SharedArrayBuffer(Math.max(1, size.slots * size.rows * size.parts) * PART_BYTES);
    this.#numbers = new Float64Array(this.buffer);
    this.#rows = size.rows;
    this.#parts = size.parts;
  }

  /** Null: the sample lacks the field. */
  set(slot: number, row: number, part: number, value: Part | null): void {
    const at = this.#at(slot, row, part);
    this.#numbers[at + places.offset] = value?.offset ?? ABSENT;
    this.#numbers[at + places.bytes] = value?.bytes ?? 0;
    this.#numbers[at + places.crc32] = value?.crc32 ?? UNCHECKED;
    this.#numbers[at + places.msgpack] = value?.msgpack === true ? 1 : 0;
  }

  get(slot: number, row: number, part: number): Part | null {
    const at = this.#at(slot, row, part);
    const offset = this.#numbers[at + places.offset]!;
    if (offset === ABSENT) return null;
    return {
      offset,
      bytes: this.#numbers[at + places.bytes]!,
      crc32: this.#numbers[at + places.crc32]!,
      msgpack: this.#numbers[at + places.msgpack] === 1,
    };
  }

  #at(slot: number, row: number, part: number): number {
    return ((slot * this.#rows + row) * this.#parts + part) * NUMBERS;
  }
}
