import type { Job } from '../../ring/job.js';
import { ObjectRows } from './object-rows.js';
import type { Decoding, RowForm, Rows } from './rows.js';

/** An image of a list batch: uint8 [height, width, 3]. */
export interface ListImage {
  readonly kind: 'image';
  readonly slot: number;
  readonly row: number;
  readonly pixels: Uint8Array<ArrayBuffer>;
  readonly height: number;
  readonly width: number;
}

/** Rows whose images have no common size: each image is sent to the main thread. */
export class ListRows implements Rows {
  readonly #with: Decoding;
  readonly #post: (image: ListImage, transfer: ArrayBuffer[]) => void;
  readonly #objects: ObjectRows;

  constructor(form: RowForm, decoding: Decoding, post: (image: ListImage, transfer: ArrayBuffer[]) => void) {
    this.#with = decoding;
    this.#post = post;
    this.#objects = new ObjectRows(form);
  }

  async fill(job: Job): Promise<void> {
    const { payloads, decoder } = this.#with;
    const { bytes, cropIndex, given } = payloads.withExtras(job);
    const { pixels, height, width } = await decoder.decodeToArray(bytes, job, cropIndex, given);
    this.#objects.write(job, decoder.annotations);
    this.#post({ kind: 'image', slot: job.slot, row: job.row, pixels, height, width }, [pixels.buffer]);
  }
}
