import { layOut } from './fields.js';

/** What workers must know of a batch as a whole, in shared memory: its labels, and which sample its random numbers are of. */
export interface BatchFactsBuffers {
  readonly labels: SharedArrayBuffer;
  readonly firsts: SharedArrayBuffer;
}

/** The sample of a batch's first row. */
export interface FirstSample {
  readonly epoch: number;
  readonly number: number;
  readonly occurrence: number;
}

const { places, bytes: FIRST_BYTES } = layOut<keyof FirstSample>({
  epoch: 'float64',
  number: 'float64',
  occurrence: 'float64',
});
const FIRST_NUMBERS = FIRST_BYTES / 8;

export class BatchFacts {
  readonly buffers: BatchFactsBuffers;
  readonly #labels: Int32Array;
  readonly #firsts: Float64Array;
  readonly #rows: number;

  /** Over fresh memory for `slots` slots of `rows` rows, or over that of another thread. */
  constructor({ slots, rows }: { readonly slots: number; readonly rows: number }, buffers?: BatchFactsBuffers) {
    this.buffers = buffers ?? {
      labels: new SharedArrayBuffer(slots * rows * 4),
      firsts: new SharedArrayBuffer(slots * FIRST_BYTES),
    };
    this.#labels = new Int32Array(this.buffers.labels);
    this.#firsts = new Float64Array(this.buffers.firsts);
    this.#rows = rows;
  }

  /** Class numbers of the first `rows` rows of a slot. */
  labels(slot: number, rows: number): Int32Array {
    return this.#labels.subarray(slot * this.#rows, slot * this.#rows + rows);
  }

  setLabel(slot: number, row: number, label: number): void {
    this.#labels[slot * this.#rows + row] = label;
  }

  first(slot: number): FirstSample {
    const at = slot * FIRST_NUMBERS;
    return {
      epoch: this.#firsts[at + places.epoch]!,
      number: this.#firsts[at + places.number]!,
      occurrence: this.#firsts[at + places.occurrence]!,
    };
  }

  setFirst(slot: number, { epoch, number, occurrence }: FirstSample): void {
    const at = slot * FIRST_NUMBERS;
    this.#firsts[at + places.epoch] = epoch;
    this.#firsts[at + places.number] = number;
    this.#firsts[at + places.occurrence] = occurrence;
  }
}
