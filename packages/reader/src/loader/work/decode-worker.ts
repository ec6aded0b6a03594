/**
 * A decode worker: takes jobs from shared memory, checks the bytes, and decodes and transforms the image directly into
 * its row of the batch slot. It blocks while there are no jobs. It awaits only if a codec or a custom step is
 * asynchronous.
 */

import { parentPort, workerData } from 'node:worker_threads';
import { SampleDecodeError, type SentencePart, sentenceOf } from '@shardtool/base';
import { headerOf } from '@shardtool/format';
import { layOutRecord, writeRecord } from '../../annotations/record.js';
import { createDecoder, type Decoder, type DecoderOptions, OtherSize } from '../../decode/decoder.js';
import type { ViewTargets } from '../../decode/views-decoder.js';
import type { KernelMemory } from '../../kernels/kernel-memory.js';
import type { Mixes } from '../../transform/mix.js';
import { drawnValues, drawsAddress, type ViewLayout, viewAddress } from '../../views/slot-layout.js';
import { BatchFacts, type BatchFactsBuffers } from '../ring/batch-facts.js';
import { Control, type ControlBuffers } from '../ring/control.js';
import { emptyJob, type Job, WHOLE_BATCH } from '../ring/job.js';
import { scratchAddress, slotAddress } from '../ring/slots.js';
import type { RaggedRows } from '../setup/decoder-output.js';
import { ArrayRows, OtherArray } from './array-rows.js';
import type { CustomSteps } from './custom-steps.js';
import { NO_EXTRAS, type PayloadPlaces, Payloads } from './payloads.js';
import { CutImage } from './shard-images.js';
import { CustomStepFailure, DroppedSample, loadWorkSteps, type WorkSteps } from './work-steps.js';
import { WorkTime } from './work-time.js';

export interface DecodeWorkerData extends PayloadPlaces {
  readonly worker: number;
  readonly control: ControlBuffers;
  readonly memory: KernelMemory;
  /** Null: the bytes are checked and stay encoded. */
  readonly decoder: Omit<DecoderOptions, 'memory' | 'scratch'> | null;
  /** Images have no common size: each is sent to the main thread as a separate array. */
  readonly list: boolean;
  /** False: rows have only arrays, which are copied to the slot. */
  readonly hasImages: boolean;
  /** The views that are made of each image; null: the transform makes one image. */
  readonly views: ViewLayout | null;
  readonly facts: BatchFactsBuffers;
  readonly steps: CustomSteps;
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

/** An image of a list batch: uint8 [height, width, 3]. */
export interface ListImage {
  readonly kind: 'image';
  readonly slot: number;
  readonly row: number;
  readonly pixels: Uint8Array<ArrayBuffer>;
  readonly height: number;
  readonly width: number;
}

export type WorkerMessage = { readonly kind: 'ready' } | BadRow | ListImage;

const data = workerData as DecodeWorkerData;
const control = new Control(data.control);
const payloads = new Payloads(data, control);
const facts = new BatchFacts({ slots: data.plan.slots, rows: data.rows }, data.facts);

const arrayRows = new ArrayRows(data, payloads);
const { annotations } = data;
const record = annotations && layOutRecord(annotations);

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
  parentPort!.postMessage({ kind: 'ready' } satisfies WorkerMessage);
  const job = emptyJob();
  const time = new WorkTime(control, decoder?.clock ?? null);

  while (control.take(job)) {
    time.begin();
    const done = job.row === WHOLE_BATCH || doRow(job, decoder, steps);
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
function doRow(job: Job, decoder: Decoder | null, steps: WorkSteps | null): boolean | Promise<boolean> {
  try {
    const pending = decodeRow(job, decoder, steps);
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

function decodeRow(job: Job, decoder: Decoder | null, steps: WorkSteps | null): void | Promise<void> {
  if (!data.hasImages) {
    arrayRows.copy(job);
    return;
  }
  if (data.ragged !== null) return decodeImages(job, decoder!, data.ragged);
  const unread = payloads.unread(job);
  if (unread !== null) return decoder!.decodeStored(unread, job, rowAddress(job));
  const bytes = payloads.image(job);
  if (decoder === null) return;
  if (job.orientation === 0) job.orientation = headerOf(bytes)?.orientation ?? 1;
  const cropIndex = payloads.cropIndex(job);
  if (data.views !== null) return decoder.decodeViews(bytes, job, viewTargets(job, data.views), cropIndex);
  const isPlain = data.extraFields.length === 0 && !steps?.hasRowSteps;
  const { images, fields, given } = isPlain ? NO_EXTRAS : payloads.extras(job);
  if (data.list) {
    return decoder.decodeToArray(bytes, job, cropIndex, given).then(({ pixels, height, width }) => {
      writeObjects(job, decoder);
      post({ kind: 'image', slot: job.slot, row: job.row, pixels, height, width }, [pixels.buffer]);
    });
  }
  const target = rowAddress(job);
  const done = steps?.hasRowSteps
    ? steps.row({ bytes, cropIndex, given }, images, fields, job, target)
    : decoder.decode(bytes, job, target, images, cropIndex, given);
  if (given === null) return done;
  if (done !== undefined) return done.then(() => writeObjects(job, decoder));
  writeObjects(job, decoder);
}

/** Decodes all images of a sample into the places of its row. Image k has the random numbers of view k. */
async function decodeImages(job: Job, decoder: Decoder, { max, imageBytes }: RaggedRows): Promise<void> {
  const { slot, row, epoch, source, number, occurrence, bucket } = job;
  const address = slotAddress(data.plan, slot) + facts.firstImage(slot, row) * imageBytes[bucket]!;
  for (let image = 0; image < max; image++) {
    try {
      const bytes = payloads.raggedImage(job, image);
      if (bytes === null) return;
      const orientation = headerOf(bytes)?.orientation ?? 1;
      const identity = { epoch, source, number, occurrence, orientation, bucket, view: image + 1 };
      await decoder.decode(bytes, identity, address + image * imageBytes[bucket]!);
    } catch (cause) {
      throw new BadImage(image, cause);
    }
  }
}

/** One of several images of a sample could not be decoded. */
class BadImage extends Error {
  readonly image: number;
  override readonly cause: unknown;

  constructor(image: number, cause: unknown) {
    super();
    this.image = image;
    this.cause = cause;
  }
}

/** Writes the annotations of the image into its row of the slot. */
function writeObjects({ slot, row, bucket }: Job, { annotations: placed }: Decoder): void {
  if (placed === null) return;
  const part = data.extraFields.length;
  const { extraFields, rowBytes } = data.plan;
  const address = slotAddress(data.plan, slot) + extraFields[part]! + row * rowBytes[bucket]!.extraFields[part]!;
  // The mix of a batch writes the records again, in their format.
  const format = annotations!.imagesPerRow > 1 ? 'xyxy' : annotations!.boxFormat;
  writeRecord(placed, record!, format, data.memory.buffer, address);
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

/** Returns the targets of the views of a row. */
function viewTargets({ slot, row }: Job, views: ViewLayout): ViewTargets {
  const address = slotAddress(data.plan, slot);
  const { extraFields: parts } = data.plan;
  const rows = control.slots.rows(slot);
  const targets: number[] = [];
  for (const [group, { count }] of views.groups.entries()) {
    for (let view = 0; view < count; view++)
      targets.push(address + viewAddress(views, parts, { group, view, row, rows }));
  }
  const values = drawnValues(views.draws) * targets.length;
  const drawn =
    values === 0
      ? NOTHING_DRAWN
      : new Float32Array(data.memory.buffer, address + drawsAddress(views, parts, row), values);
  return { views: targets, drawn };
}
const NOTHING_DRAWN = new Float32Array(0);

function rowAddress({ slot, row, bucket }: Job): number {
  return slotAddress(data.plan, slot) + row * data.plan.rowBytes[bucket]!.image;
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
