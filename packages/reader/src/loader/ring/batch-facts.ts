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

const FIRST_NUMBERS = 3;

export class BatchFacts {
  readonly buffers: BatchFactsBuffers;
  readonly #labels: Int32Array;
  readonly #firsts: Float64Array;
  readonly #rows: number;

  /** Over fresh memory for `slots` slots of `rows` rows, or over that of another thread. */
  constructor({ slots, rows }: { readonly slots: number; readonly rows: number }, buffers?: BatchFactsBuffers) {
    this.buffers = buffers ?? {
      labels: new SharedArrayBuffer(slots * rows * 4),
      firsts: new SharedArrayBuffer(slots * FIRST_NUMBERS * 8),
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
    return { epoch: this.#firsts[at]!, number: this.#firsts[at + 1]!, occurrence: this.#firsts[at + 2]! };
  }

  setFirst(slot: number, { epoch, number, occurrence }: FirstSample): void {
    this.#firsts.set([epoch, number, occurrence], slot * FIRST_NUMBERS);
  }
}
