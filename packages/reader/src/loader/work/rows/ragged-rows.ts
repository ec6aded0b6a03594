import { headerOf } from '@shardtool/format';
import type { Job } from '../../ring/job.js';
import { slotAddress } from '../../ring/slots.js';
import type { RaggedRows as Ragged } from '../../setup/decoder-output.js';
import type { Decoding, RowForm, Rows } from './rows.js';

type RaggedForm = RowForm & { readonly ragged: Ragged };

/** Rows with a varying number of images, which follow each other in the slot. Image k has the random numbers of view k. */
export class RaggedRows implements Rows {
  readonly #form: RaggedForm;
  readonly #with: Decoding;

  constructor(form: RaggedForm, decoding: Decoding) {
    this.#form = form;
    this.#with = decoding;
  }

  /** Rejects with {@link BadImage}. */
  async fill(job: Job): Promise<void> {
    const { payloads, decoder, facts } = this.#with;
    const { plan, ragged } = this.#form;
    const { slot, row, epoch, source, number, occurrence, bucket } = job;
    const imageBytes = ragged.imageBytes[bucket]!;
    const address = slotAddress(plan, slot) + facts.firstImage(slot, row) * imageBytes;
    for (let image = 0; image < ragged.max; image++) {
      try {
        const bytes = payloads.raggedImage(job, image);
        if (bytes === null) return;
        const orientation = headerOf(bytes)?.orientation ?? 1;
        const identity = { epoch, source, number, occurrence, orientation, bucket, view: image + 1 };
        await decoder.decode(bytes, identity, address + image * imageBytes);
      } catch (cause) {
        throw new BadImage(image, cause);
      }
    }
  }
}

/** One of several images of a sample could not be decoded. */
export class BadImage extends Error {
  readonly image: number;
  override readonly cause: unknown;

  constructor(image: number, cause: unknown) {
    super();
    this.image = image;
    this.cause = cause;
  }
}
