import type { Job } from '../../ring/job.js';
import type { Payloads } from './payloads.js';
import type { Rows } from './rows.js';

/** Rows of images that stay encoded, in the read buffers. Their checksums are checked. */
export class EncodedRows implements Rows {
  readonly #payloads: Payloads;

  constructor(payloads: Payloads) {
    this.#payloads = payloads;
  }

  fill(job: Job): void {
    this.#payloads.bytes(job);
  }
}
