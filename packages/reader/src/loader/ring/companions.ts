/**
 * Further fields of a sample that workers need: more images and masks, which become pixels with it, and what a person's own
 * step looks at. Where their bytes lie is written into shared memory beside the ring of jobs, so that a job itself stays as
 * small as it is.
 */
export interface Companion {
  readonly field: string;
  readonly kind: 'image' | 'mask' | 'field';
}

/** Where the bytes of one companion of a row are in the arena. */
export interface Part {
  /** -1 where the sample lacks the field. */
  offset: number;
  bytes: number;
  /** Expected crc32, or -1 not to check. */
  crc32: number;
  /** They are a msgpack value that stands for the field's text. */
  msgpack: boolean;
}

const NUMBERS = 4;

/** The parts of every row of every slot. The main thread writes those of a row before it publishes the row's job. */
export class PartTable {
  readonly buffer: SharedArrayBuffer;
  readonly #numbers: Float64Array;
  readonly #rows: number;
  readonly #parts: number;

  /** Over fresh memory for `slots` slots of `rows` rows of `parts` parts, or over that of another thread. */
  constructor(
    size: { readonly slots: number; readonly rows: number; readonly parts: number },
    buffer?: SharedArrayBuffer,
  ) {
    this.buffer = buffer ?? new SharedArrayBuffer(Math.max(1, size.slots * size.rows * size.parts) * NUMBERS * 8);
    this.#numbers = new Float64Array(this.buffer);
    this.#rows = size.rows;
    this.#parts = size.parts;
  }

  set(slot: number, row: number, part: number, { offset, bytes, crc32, msgpack }: Part): void {
    this.#numbers.set([offset, bytes, crc32, msgpack ? 1 : 0], this.#at(slot, row, part));
  }

  get(slot: number, row: number, part: number): Part {
    const at = this.#at(slot, row, part);
    const [offset, bytes, crc32, msgpack] = this.#numbers.subarray(at, at + NUMBERS) as unknown as [
      number,
      number,
      number,
      number,
    ];
    return { offset, bytes, crc32, msgpack: msgpack === 1 };
  }

  #at(slot: number, row: number, part: number): number {
    return ((slot * this.#rows + row) * this.#parts + part) * NUMBERS;
  }
}
