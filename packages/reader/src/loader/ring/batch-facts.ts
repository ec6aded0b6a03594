import type { ShownPart } from '../../decode/decoded.js';
import type { DrawnMix } from '../../transform/mixes/mix.js';
import { layOut } from './fields.js';

/**
 * Data about whole batches in shared memory. Workers read a batch's labels and the sample that its random numbers
 * belong to, and write how it was mixed.
 */
export interface BatchFactsBuffers {
  readonly labels: SharedArrayBuffer;
  readonly facts: SharedArrayBuffer;
  /** The share of its own image that each row of a mixed batch keeps. */
  readonly weights: SharedArrayBuffer;
  /** The part of the image that each row shows. Empty if it is not requested. */
  readonly shown: SharedArrayBuffer;
  /** For each row, the number of images of the batch before its own. Empty without the option `images`. */
  readonly firstImages: SharedArrayBuffer;
  /** 1 marks a row without an image, because its sample is bad and was skipped. */
  readonly blank: SharedArrayBuffer;
}

/** The sample of a batch's first row. */
export interface FirstSample {
  readonly epoch: number;
  readonly number: number;
  readonly occurrence: number;
  readonly source: number;
}

/** How a batch was mixed: the number of the mix among those of the loader, and the weight of each row's own label. */
export interface MixFact {
  readonly index: number;
  readonly weights: Float64Array;
}

/** Layout of the facts of a slot: one entry per field. */
const { places, bytes: FACT_BYTES } = layOut<keyof FirstSample | 'mix'>({
  epoch: 'float64',
  number: 'float64',
  occurrence: 'float64',
  source: 'float64',
  mix: 'float64',
});
const FACT_NUMBERS = FACT_BYTES / 8;
/** Numbers per row: height and width of the image and of the resized image, and where the row begins in the latter. */
const SHOWN_NUMBERS = 6;

/** The part of the image that each row shows: pairs of pixels, int32 [n, 2]. */
export interface BatchCrop {
  /** [height, width] of the image, after rotation by its orientation. */
  readonly originalSize: Int32Array;
  /** [height, width] to which it was resized. */
  readonly resizedSize: Int32Array;
  /** Top left corner of the row in the resized image, [top, left]. If the row is mirrored, in the mirror image. */
  readonly topLeft: Int32Array;
}

export class BatchFacts {
  readonly buffers: BatchFactsBuffers;
  readonly #labels: Int32Array;
  readonly #facts: Float64Array;
  readonly #weights: Float64Array;
  readonly #shown: Int32Array;
  readonly #firstImages: Int32Array;
  readonly #blank: Uint8Array;
  readonly #rows: number;

  /** Uses new memory for `slots` slots of `rows` rows, or the memory of another thread. */
  constructor(
    {
      slots,
      rows,
      showsParts = false,
      isRagged = false,
    }: {
      readonly slots: number;
      readonly rows: number;
      readonly showsParts?: boolean;
      readonly isRagged?: boolean;
    },
    buffers?: BatchFactsBuffers,
  ) {
    this.buffers = buffers ?? {
      labels: new SharedArrayBuffer(slots * rows * 4),
      facts: new SharedArrayBuffer(slots * FACT_BYTES),
      weights: new SharedArrayBuffer(slots * rows * 8),
      shown: new SharedArrayBuffer(showsParts ? slots * rows * SHOWN_NUMBERS * 4 : 0),
      firstImages: new SharedArrayBuffer(isRagged ? slots * rows * 4 : 0),
      blank: new SharedArrayBuffer(slots * rows),
    };
    this.#labels = new Int32Array(this.buffers.labels);
    this.#facts = new Float64Array(this.buffers.facts);
    this.#weights = new Float64Array(this.buffers.weights);
    this.#shown = new Int32Array(this.buffers.shown);
    this.#firstImages = new Int32Array(this.buffers.firstImages);
    this.#blank = new Uint8Array(this.buffers.blank);
    this.#rows = rows;
  }

  /** Class numbers of the first `rows` rows of a slot. */
  labels(slot: number, rows: number): Int32Array {
    return this.#labels.subarray(slot * this.#rows, slot * this.#rows + rows);
  }

  /** The label of a row before it is decoded. */
  setLabel(slot: number, row: number, label: number): void {
    this.#labels[slot * this.#rows + row] = label;
    this.#blank[slot * this.#rows + row] = 0;
  }

  setBlank(slot: number, row: number): void {
    this.#blank[slot * this.#rows + row] = 1;
  }

  isBlank(slot: number, row: number): boolean {
    return this.#blank[slot * this.#rows + row] === 1;
  }

  first(slot: number): FirstSample {
    const at = slot * FACT_NUMBERS;
    return {
      epoch: this.#facts[at + places.epoch]!,
      number: this.#facts[at + places.number]!,
      occurrence: this.#facts[at + places.occurrence]!,
      source: this.#facts[at + places.source]!,
    };
  }

  setFirst(slot: number, { epoch, number, occurrence, source }: FirstSample): void {
    const at = slot * FACT_NUMBERS;
    this.#facts[at + places.epoch] = epoch;
    this.#facts[at + places.number] = number;
    this.#facts[at + places.occurrence] = occurrence;
    this.#facts[at + places.source] = source;
  }

  /** Sets the position of a row's first image among the images of the batch, before the row is decoded. */
  setFirstImage(slot: number, row: number, image: number): void {
    this.#firstImages[slot * this.#rows + row] = image;
  }

  firstImage(slot: number, row: number): number {
    return this.#firstImages[slot * this.#rows + row]!;
  }

  /** Null if the row shows no image. Does nothing if it is not requested. */
  setShown(slot: number, row: number, part: ShownPart | null): void {
    if (this.#shown.length === 0) return;
    const at = (slot * this.#rows + row) * SHOWN_NUMBERS;
    if (part === null) this.#shown.fill(0, at, at + SHOWN_NUMBERS);
    else {
      const { original, resized, top, left } = part;
      this.#shown.set([original.height, original.width, resized.height, resized.width, top, left], at);
    }
  }

  /** Returns copies for the first `rows` rows, each [height, width] or [top, left]. Null if it is not requested. */
  shown(slot: number, rows: number): BatchCrop | null {
    if (this.#shown.length === 0) return null;
    const of = (first: number): Int32Array => {
      const pairs = new Int32Array(2 * rows);
      for (let row = 0; row < rows; row++) {
        const at = (slot * this.#rows + row) * SHOWN_NUMBERS + first;
        pairs[2 * row] = this.#shown[at]!;
        pairs[2 * row + 1] = this.#shown[at + 1]!;
      }
      return pairs;
    };
    return { originalSize: of(0), resizedSize: of(2), topLeft: of(4) };
  }

  /** How a batch was mixed, as a copy, after the batch was processed as a whole. Null if it was not mixed. */
  mix(slot: number, rows: number): MixFact | null {
    const index = this.#facts[slot * FACT_NUMBERS + places.mix]! - 1;
    if (index < 0) return null;
    return { index, weights: this.#weights.slice(slot * this.#rows, slot * this.#rows + rows) };
  }

  /** Records how a batch was mixed. `weights` are those of the rows. */
  setMix(slot: number, mix: Pick<DrawnMix, 'index'> | null, weights: readonly number[]): void {
    // 0 is a batch that was not mixed.
    this.#facts[slot * FACT_NUMBERS + places.mix] = mix === null ? 0 : mix.index + 1;
    weights.forEach((weight, row) => {
      this.#weights[slot * this.#rows + row] = weight;
    });
  }
}
