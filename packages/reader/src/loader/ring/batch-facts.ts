import type { DrawnMix } from '../../transform/mix.js';
import { layOut } from './fields.js';

/**
 * What workers must know of a batch as a whole, in shared memory: its labels, and which sample its random numbers are of;
 * and what they say of it: how it was mixed.
 */
export interface BatchFactsBuffers {
  readonly labels: SharedArrayBuffer;
  readonly facts: SharedArrayBuffer;
}

/** The sample of a batch's first row. */
export interface FirstSample {
  readonly epoch: number;
  readonly number: number;
  readonly occurrence: number;
  readonly source: number;
}

/** How a batch was mixed, for those who look at its labels. */
export type MixFact = Pick<DrawnMix, 'name' | 'weight'>;

/** By number: 0 is a batch that was not mixed. */
const MIXES = [null, 'mixup', 'cutmix'] as const;

/** How the facts of a slot lie: one entry a field. */
const { places, bytes: FACT_BYTES } = layOut<keyof FirstSample | 'mix' | 'mixWeight'>({
  epoch: 'float64',
  number: 'float64',
  occurrence: 'float64',
  source: 'float64',
  mix: 'float64',
  mixWeight: 'float64',
});
const FACT_NUMBERS = FACT_BYTES / 8;

export class BatchFacts {
  readonly buffers: BatchFactsBuffers;
  readonly #labels: Int32Array;
  readonly #facts: Float64Array;
  readonly #rows: number;

  /** Over fresh memory for `slots` slots of `rows` rows, or over that of another thread. */
  constructor({ slots, rows }: { readonly slots: number; readonly rows: number }, buffers?: BatchFactsBuffers) {
    this.buffers = buffers ?? {
      labels: new SharedArrayBuffer(slots * rows * 4),
      facts: new SharedArrayBuffer(slots * FACT_BYTES),
    };
    this.#labels = new Int32Array(this.buffers.labels);
    this.#facts = new Float64Array(this.buffers.facts);
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

  /** Of a batch that has been worked on as a whole. */
  mix(slot: number): MixFact | null {
    const at = slot * FACT_NUMBERS;
    const name = MIXES[this.#facts[at + places.mix]!] ?? null;
    return name && { name, weight: this.#facts[at + places.mixWeight]! };
  }

  setMix(slot: number, mix: MixFact | null): void {
    const at = slot * FACT_NUMBERS;
    this.#facts[at + places.mix] = MIXES.indexOf(mix?.name ?? null);
    this.#facts[at + places.mixWeight] = mix?.weight ?? 1;
  }
}
