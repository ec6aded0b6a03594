/** The rows of batches in their different forms. A loader has rows of one form, so a worker chooses the form once. */
import type { Decoder } from '../../../decode/decoder.js';
import type { KernelMemory } from '../../../kernels/kernel-memory.js';
import type { ViewLayout } from '../../../views/slot-layout.js';
import type { BatchFacts } from '../../ring/batch-facts.js';
import type { Job } from '../../ring/job.js';
import type { SlotStates } from '../../ring/slot-states.js';
import { ArrayRows } from './array-rows.js';
import { EncodedRows } from './encoded-rows.js';
import { ImageRows } from './image-rows.js';
import { type ListImage, ListRows } from './list-rows.js';
import type { ImageWithExtras, PayloadPlaces, Payloads } from './payloads.js';
import { RaggedRows } from './ragged-rows.js';
import { ViewRows } from './view-rows.js';

/** Fills one row of a batch at a time. */
export interface Rows {
  /**
   * Fills the row of a job in its slot. Throws, or rejects with, {@link SampleDecodeError}, CutImage, OtherArray, BadImage
   * and the errors of custom steps. Returns a promise only if a codec or a custom step is asynchronous.
   */
  fill(job: Job): void | Promise<void>;
}

/** The form of the rows, and where their samples and their slots are. */
export interface RowForm extends PayloadPlaces {
  readonly memory: KernelMemory;
  /** Images have no common size: each is sent to the main thread as a separate array. */
  readonly list: boolean;
  /** False: rows have only arrays, which are copied to the slot. */
  readonly hasImages: boolean;
  /** The views that are made of each image; null: the transform makes one image. */
  readonly views: ViewLayout | null;
}

/** Custom steps on samples. */
export interface RowSteps {
  /** Runs the step on fields, decodes the row, and runs the step on pixels. Rejects if a step throws or drops the sample. */
  row(image: ImageWithExtras, job: Job, target: number): Promise<void>;
}

/** The parts of a worker that decode images into rows. */
export interface Decoding {
  readonly payloads: Payloads;
  readonly facts: BatchFacts;
  readonly slots: SlotStates;
  readonly decoder: Decoder;
}

/**
 * Returns the rows of the form that `form` describes. `decoder` is null if images stay encoded, or if there are none, and `steps` if
 * there are no steps on samples.
 */
export function rowsOf(
  form: RowForm,
  { decoder, ...parts }: Omit<Decoding, 'decoder'> & { readonly decoder: Decoder | null },
  steps: RowSteps | null,
  post: (image: ListImage, transfer: ArrayBuffer[]) => void,
): Rows {
  if (!form.hasImages) return new ArrayRows(form, parts.payloads);
  if (decoder === null) return new EncodedRows(parts.payloads);
  const decoding = { ...parts, decoder };
  const { ragged, views } = form;
  if (ragged !== null) return new RaggedRows({ ...form, ragged }, decoding);
  if (views !== null) return new ViewRows({ ...form, views }, decoding);
  return form.list ? new ListRows(form, decoding, post) : new ImageRows(form, decoding, steps);
}
