import type { FinishedShard } from './layout.js';
import { NumberList } from './number-list.js';

/** Where a writer put samples and their payloads, in bytes from the start of the shard. */
export class SamplePlaces {
  readonly #sampleOffset = new NumberList();
  readonly #sampleBytes = new NumberList();
  readonly #payloadOffset = new NumberList();

  addSample(offset: number, bytes: number): void {
    this.#sampleOffset.push(offset);
    this.#sampleBytes.push(bytes);
  }

  /** Payloads are added in the order of the samples, and of the fields of each. */
  addPayload(offset: number): void {
    this.#payloadOffset.push(offset);
  }

  /** Returns the places in the form of {@link FinishedShard}. */
  toArrays(): Pick<FinishedShard, 'sampleOffset' | 'sampleBytes' | 'payloadOffset'> {
    return {
      sampleOffset: this.#sampleOffset.toArray(),
      sampleBytes: this.#sampleBytes.toArray(),
      payloadOffset: this.#payloadOffset.toArray(),
    };
  }
}
