import type { Job } from '../../ring/job.js';
import { slotAddress } from '../../ring/slots.js';
import { ObjectRows } from './object-rows.js';
import type { Decoding, RowForm, RowSteps, Rows } from './rows.js';

/** Rows with one image each, and its extra fields and annotations. */
export class ImageRows implements Rows {
  readonly #form: RowForm;
  readonly #with: Decoding;
  /** Null if there are no custom steps on samples. */
  readonly #steps: RowSteps | null;
  readonly #objects: ObjectRows;

  constructor(form: RowForm, decoding: Decoding, steps: RowSteps | null) {
    this.#form = form;
    this.#with = decoding;
    this.#steps = steps;
    this.#objects = new ObjectRows(form);
  }

  fill(job: Job): void | Promise<void> {
    const { payloads, decoder } = this.#with;
    const { plan } = this.#form;
    const target = slotAddress(plan, job.slot) + job.row * plan.rowBytes[job.bucket]!.image;
    const unread = payloads.unread(job);
    if (unread !== null) return decoder.decodeStored(unread, job, target);
    const image = payloads.withExtras(job);
    const { bytes, cropIndex, images, given } = image;
    const done =
      this.#steps === null
        ? decoder.decode(bytes, job, target, images, cropIndex, given)
        : this.#steps.row(image, job, target);
    if (given === null) return done;
    if (done !== undefined) return done.then(() => this.#objects.write(job, decoder.annotations));
    this.#objects.write(job, decoder.annotations);
  }
}
