import type { SampleToWrite } from '../shard/write-samples.js';
import type { HandOver } from './hand-over.js';

/** Passes on samples that fit into the shards, and rejects the others. */
export class FittingSamples implements AsyncIterator<SampleToWrite, undefined> {
  readonly #given: HandOver<SampleToWrite>;
  readonly #check: (sample: SampleToWrite) => void;
  #first: IteratorResult<SampleToWrite, undefined> | null = null;

  /** `check` throws if a sample does not fit. */
  constructor(given: HandOver<SampleToWrite>, check: (sample: SampleToWrite) => void) {
    this.#given = given;
    this.#check = check;
  }

  /** Waits for the first sample, which is then returned next. Call it before any sample is taken. */
  async hasAny(): Promise<boolean> {
    this.#first = await this.next();
    return this.#first.done !== true;
  }

  async next(): Promise<IteratorResult<SampleToWrite, undefined>> {
    const first = this.#first;
    this.#first = null;
    if (first !== null) return first;
    for (;;) {
      const next = await this.#given.next();
      if (next.done) return next;
      try {
        this.#check(next.value);
        return next;
      } catch (error) {
        this.#given.refuse(error);
      }
    }
  }
}
