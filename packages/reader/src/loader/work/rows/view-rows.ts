import type { ViewTargets } from '../../../decode/views-decoder.js';
import { drawnValues, drawsAddress, type ViewLayout, viewAddress } from '../../../views/slot-layout.js';
import type { Job } from '../../ring/job.js';
import { slotAddress } from '../../ring/slots.js';
import type { Decoding, RowForm, Rows } from './rows.js';

/** Rows with several views of each image. */
export class ViewRows implements Rows {
  readonly #form: RowForm & { readonly views: ViewLayout };
  readonly #with: Decoding;

  constructor(form: RowForm & { readonly views: ViewLayout }, decoding: Decoding) {
    this.#form = form;
    this.#with = decoding;
  }

  fill(job: Job): void | Promise<void> {
    const { payloads, decoder } = this.#with;
    const { bytes, cropIndex } = payloads.encoded(job);
    return decoder.decodeViews(bytes, job, this.#targets(job), cropIndex);
  }

  /** The addresses of the views of a row, and of the values that were drawn for them. */
  #targets({ slot, row }: Job): ViewTargets {
    const { plan, views, memory } = this.#form;
    const { extraFields: parts } = plan;
    const address = slotAddress(plan, slot);
    const rows = this.#with.slots.rows(slot);
    const targets: number[] = [];
    for (const [group, { count }] of views.groups.entries()) {
      for (let view = 0; view < count; view++)
        targets.push(address + viewAddress(views, parts, { group, view, row, rows }));
    }
    const values = drawnValues(views.draws) * targets.length;
    const drawn =
      values === 0 ? NOTHING_DRAWN : new Float32Array(memory.buffer, address + drawsAddress(views, parts, row), values);
    return { views: targets, drawn };
  }
}

const NOTHING_DRAWN = new Float32Array(0);
