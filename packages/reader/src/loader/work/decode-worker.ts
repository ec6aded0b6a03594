/**
 * A decode worker: takes jobs from shared memory, checks the bytes, and decodes and transforms the image directly into
 * its row of the batch slot. It blocks while there are no jobs. It awaits only if a codec or a custom step is
 * asynchronous.
 */

import { parentPort } from 'node:worker_threads';
import { SampleDecodeError, type SentencePart, sentenceOf } from '@shardtool/base';
import { createDecoder, type Decoder, type DecoderOptions, OtherSize } from '../../decode/decoder.js';
import type { Mixes } from '../../transform/mixes/mix-option.js';
import { BatchFacts, type BatchFactsBuffers } from '../ring/batch-facts.js';
import { Control, type ControlBuffers } from '../ring/control.js';
import { emptyJob, type Job, WHOLE_BATCH } from '../ring/job.js';
import { scratchAddress } from '../ring/slots.js';
import type { ResolvedSteps } from '../setup/custom-steps.js';
import { firstMessage } from './first-message.js';
import { OtherArray } from './rows/array-rows.js';
import type { ListImage } from './rows/list-rows.js';
import { Payloads } from './rows/payloads.js';
import { BadImage } from './rows/ragged-rows.js';
import { type RowForm, type Rows, rowsOf } from './rows/rows.js';
import { CutImage } from './rows/shard-images.js';
import { CustomStepFailure, DroppedSample, loadWorkSteps } from './work-steps.js';
import { WorkTime } from './work-time.js';

export interface DecodeWorkerData extends RowForm {
  readonly worker: number;
  readonly control: ControlBuffers;
  /** Null: the bytes are checked and stay encoded. */
  readonly decoder: Omit<DecoderOptions, 'memory' | 'scratch'> | null;
  readonly facts: BatchFactsBuffers;
  readonly steps: ResolvedSteps;
  readonly mixes: Mixes;
}

/**
 * A sample that could not be decoded, or that a custom step dropped or failed on. `reason` is a sentence without
 * shard and key, which the main thread knows; `row` may be WHOLE_BATCH.
 */
export interface BadRow {
  readonly kind: 'bad';
  readonly slot: number;
  readonly row: number;
  /** A text, or the parts of a sentence that names options. */
  readonly reason: string | readonly SentencePart[];
  /** Which of several images of the sample is bad, counted from 0. The main thread knows its field. */
  readonly image?: number;
  readonly dropped?: boolean;
  readonly isOtherSize?: boolean;
  /** Name of a field whose array has another dtype or shape than the rows of the batch. */
  readonly otherArray?: string;
  /** The end of a shard that is shorter than its index says, and that of the image. */
  readonly cut?: { readonly end: number; readonly needed: number };
  readonly stack?: string;
}

export type WorkerMessage = { readonly kind: 'ready' } | BadRow | ListImage;

const data = firstMessage<DecodeWorkerData>() ?? process.exit();
const control = new Control(data.control);
const payloads = new Payloads(data, control);
const facts = new BatchFacts({ slots: data.plan.slots, rows: data.rows }, data.facts);

/** Counts the message before it is sent: the main thread may look at the slot first, and then waits for the message. */
function post(message: BadRow | ListImage, transfer: ArrayBuffer[] = []): void {
  control.slots.countPosted(message.slot);
  parentPort!.postMessage(message, transfer);
}

async function run(): Promise<void> {
  const decoder =
    data.decoder === null
      ? null
      : await createDecoder({
          ...data.decoder,
          memory: data.memory,
          scratch: { offset: scratchAddress(data.plan, data.worker), bytes: data.plan.scratchBytes },
        });
  const steps = decoder === null ? null : await loadWorkSteps(data, decoder);
  const { slots } = control;
  const rows = rowsOf(data, { payloads, facts, slots, decoder }, steps?.hasRowSteps ? steps : null, post);
  parentPort!.postMessage({ kind: 'ready' } satisfies WorkerMessage);
  const job = emptyJob();
  const time = new WorkTime(control, decoder?.clock ?? null);

  while (control.take(job)) {
    time.begin();
    const done = job.row === WHOLE_BATCH || doRow(job, rows, decoder);
    const isLast = typeof done === 'boolean' ? done : await done;
    time.end();
    if (!isLast || steps === null) continue;
    const begun = performance.now();
    try {
      await steps.wholeBatch(job.slot, control.slots.rows(job.slot), job.bucket);
    } catch (error) {
      if (!(error instanceof CustomStepFailure)) throw error;
      post({ kind: 'bad', slot: job.slot, row: WHOLE_BATCH, reason: error.message, stack: error.stack });
    }
    time.addWhole(performance.now() - begun);
    control.slots.finishWhole(job.slot);
  }
  decoder?.close();
  payloads.close();
}

/** Does a job. Returns true if the batch is complete and its batch step is next. Not async, to avoid needless awaits. */
function doRow(job: Job, rows: Rows, decoder: Decoder | null): boolean | Promise<boolean> {
  try {
    const pending = rows.fill(job);
    if (pending === undefined) return finish(job, decoder);
    return pending.then(
      () => finish(job, decoder),
      (error: unknown) => {
        report(error, job);
        return finish(job, decoder);
      },
    );
  } catch (error) {
    report(error, job);
    return finish(job, decoder);
  }
}

/** Reports a bad sample. Any other error ends this worker, and with it the loop, with the error as the reason. */
function report(thrown: unknown, { slot, row }: Job): void {
  const [error, of] = thrown instanceof BadImage ? [thrown.cause, { image: thrown.image }] : [thrown, {}];
  if (error instanceof OtherArray) post({ kind: 'bad', slot, row, reason: error.message, otherArray: error.field });
  else if (error instanceof CutImage) {
    const { end, needed } = error;
    post({ kind: 'bad', slot, row, reason: error.message, cut: { end, needed } });
  } else if (error instanceof OtherSize)
    post({ kind: 'bad', slot, row, reason: error.reason, isOtherSize: true, ...of });
  else if (error instanceof SampleDecodeError) post({ kind: 'bad', slot, row, reason: partsOf(error), ...of });
  else if (error instanceof DroppedSample) post({ kind: 'bad', slot, row, reason: error.message, dropped: true });
  else if (error instanceof CustomStepFailure)
    post({ kind: 'bad', slot, row, reason: error.message, stack: error.stack });
  else throw error;
}

function partsOf(error: SampleDecodeError): BadRow['reason'] {
  const said = sentenceOf(error);
  return typeof said === 'string' ? said : said.parts;
}

function finish(job: Job, decoder: Decoder | null): boolean {
  if (decoder !== null && decoder.warnings > 0) control.countWarnings(decoder.takeWarnings());
  if (decoder !== null && data.decoder?.showsParts) facts.setShown(job.slot, job.row, decoder.shown);
  const narrowed = decoder?.takeNarrowed() ?? 0;
  if (narrowed > 0) control.countNarrowed(narrowed);
  const spliced = decoder?.takeSpliced() ?? 0;
  if (spliced > 0) control.countSpliced(spliced);
  return control.slots.finish(job.slot);
}

// An error ends the thread. Awaiting here would require an ES module, which takes longer to load than CommonJS.
run().catch((thrown: unknown) => {
  process.nextTick(() => {
    throw thrown;
  });
});
