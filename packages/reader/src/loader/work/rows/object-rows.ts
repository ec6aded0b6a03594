import { layOutRecord, type RecordLayout, writeRecord } from '../../../annotations/record.js';
import type { Annotations } from '../../../transform/annotations.js';
import type { Job } from '../../ring/job.js';
import { slotAddress } from '../../ring/slots.js';
import type { RowForm } from './rows.js';

/** The annotations of images in their rows of a slot, after those of the extra fields. */
export class ObjectRows {
  readonly #form: RowForm;
  readonly #layout: RecordLayout | null;

  constructor(form: RowForm) {
    this.#form = form;
    this.#layout = form.annotations && layOutRecord(form.annotations);
  }

  /** Writes the annotations of the image of a job. `placed` is null if it has none. */
  write({ slot, row, bucket }: Job, placed: Annotations | null): void {
    if (placed === null) return;
    const { plan, extraFields, annotations, memory } = this.#form;
    const part = extraFields.length;
    const address = slotAddress(plan, slot) + plan.extraFields[part]! + row * plan.rowBytes[bucket]!.extraFields[part]!;
    // The mix of a batch writes the records again, in their format.
    const format = annotations!.imagesPerRow > 1 ? 'xyxy' : annotations!.boxFormat;
    writeRecord(placed, this.#layout!, format, memory.buffer, address);
  }
}
