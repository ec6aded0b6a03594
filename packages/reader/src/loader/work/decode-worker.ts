/**
 * A decode worker: takes jobs from shared memory, checks the bytes, and decodes and transforms the image directly into
 * its row of the batch slot. It blocks while there are no jobs. It awaits only if a codec or a custom step is
 * asynchronous.
 */

import { parentPort, workerData } from 'node:worker_threads';
import { changedSincePacked, crc32, NpyError, SampleDecodeError, type SentencePart, sentenceOf } from '@shardtool/base';
import {
  checkedCropIndex,
  cropIndexOf,
  fieldPayload,
  headerOf,
  NpyRowCopier,
  nameTable,
  OtherNpyRow,
} from '@shardtool/format';
import type { CheckedAnnotations } from '../../annotations/options.js';
import { readAnnotations } from '../../annotations/read.js';
import { layOutRecord, writeRecord } from '../../annotations/record.js';
import { notAValue } from '../../dataset/field-bytes.js';
import type { ExtraFieldImage } from '../../decode/decoded.js';
import { createDecoder, type Decoder, type DecoderOptions, OtherSize } from '../../decode/decoder.js';
import type { ViewTargets } from '../../decode/views-decoder.js';
import type { KernelMemory } from '../../kernels/kernel-memory.js';
import type { GivenAnnotations } from '../../transform/annotations.js';
import type { Mixes } from '../../transform/mix.js';
import { drawnValues, drawsAddress, type ViewLayout, viewAddress } from '../../views/slot-layout.js';
import { arenaView } from '../read/arena.js';
import { BatchFacts, type BatchFactsBuffers } from '../ring/batch-facts.js';
import { ColumnTexts } from '../ring/column-texts.js';
import { Control, type ControlBuffers } from '../ring/control.js';
import { type ExtraField, type Part, PartTable } from '../ring/extra-fields.js';
import { emptyJob, IN_ARENA, type Job, UNCHECKED, WHOLE_BATCH } from '../ring/job.js';
import { ShardPaths, type ShardPathsBuffers } from '../ring/shard-paths.js';
import { type MemoryPlan, scratchAddress, slotAddress } from '../ring/slots.js';
import type { CustomSteps } from './custom-steps.js';
import { ShardImages } from './shard-images.js';
import { CustomStepFailure, DroppedSample, loadWorkSteps, type WorkSteps } from './work-steps.js';
import { WorkTime } from './work-time.js';

export interface DecodeWorkerData {
  readonly worker: number;
  readonly control: ControlBuffers;
  readonly arena: readonly SharedArrayBuffer[];
  readonly memory: KernelMemory;
  readonly plan: MemoryPlan;
  /** Null: the bytes are checked and stay encoded. */
  readonly decoder: Omit<DecoderOptions, 'memory' | 'scratch'> | null;
  /** Images have no common size: each is sent to the main thread as a separate array. */
  readonly list: boolean;
  /** False: rows have only arrays, which are copied to the slot. */
  readonly hasImages: boolean;
  /** Rows of a full batch. */
  readonly rows: number;
  readonly extraFields: readonly ExtraField[];
  readonly annotations: CheckedAnnotations | null;
  /** The views that are made of each image; null: the transform makes one image. */
  readonly views: ViewLayout | null;
  /** Memory of a {@link PartTable}. */
  readonly parts: SharedArrayBuffer;
  /** Memory of {@link ColumnTexts}. */
  readonly texts: readonly SharedArrayBuffer[];
  readonly facts: BatchFactsBuffers;
  readonly steps: CustomSteps;
  readonly mixes: Mixes;
  /** Files of the shards, if workers may read images themselves. Otherwise empty. */
  readonly shardPaths: ShardPathsBuffers;
  /** All images are uncompressed, so only their crops are read from shards if nothing is checked. */
  readonly readsCrops: boolean;
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
  readonly dropped?: boolean;
  readonly isOtherSize?: boolean;
  /** Name of a field whose array has another dtype or shape than the rows of the batch. */
  readonly otherArray?: string;
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
const shardImages = new ShardImages(new ShardPaths(data.shardPaths), control, data.plan.workers);
const parts = new PartTable({ slots: data.plan.slots, rows: data.rows, parts: data.extraFields.length }, data.parts);
const texts = new ColumnTexts({ slots: data.plan.slots, rows: data.rows }, data.texts);
const facts = new BatchFacts({ slots: data.plan.slots, rows: data.rows }, data.facts);

/** For each extra field that is an array: copies the values of a sample to its row. */
const copiers = data.extraFields.map(({ array }) => array && new NpyRowCopier(array));

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
  shardImages.close();
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
    copyArrays(job);
    return;
  }
  if (job.shard === IN_ARENA) return decodeRead(arenaView(data.arena, job.offset, job.bytes), job, decoder, steps);
  if (!data.readsCrops || job.crc32 !== UNCHECKED) return decodeRead(shardImages.whole(job), job, decoder, steps);
  return decoder!.decodeStored(shardImages.at(job), job, rowAddress(job));
}

function decodeRead(
  bytes: Uint8Array,
  job: Job,
  decoder: Decoder | null,
  steps: WorkSteps | null,
): void | Promise<void> {
  checkBytes(bytes, job.crc32, 'it');
  if (decoder === null) return;
  if (job.orientation === 0) job.orientation = headerOf(bytes)?.orientation ?? 1;
  const cropIndex = job.cropBytes === 0 ? null : cropIndexAt(job);
  if (data.views !== null) return decoder.decodeViews(bytes, job, viewTargets(job, data.views), cropIndex);
  const isPlain = data.extraFields.length === 0 && !steps?.hasRowSteps;
  const { images, fields, given } = isPlain ? NOTHING : extraFieldsOf(job);
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

/** Copies the arrays of a sample to their rows of the slot. */
function copyArrays(job: Job): void {
  for (const [i, { field }] of data.extraFields.entries()) {
    const part = parts.get(job.slot, job.row, i);
    if (part === null) throw new SampleDecodeError({}, `it has no field "${field}"`);
    const bytes = payloadOf(part, field);
    const rowBytes = data.plan.rowBytes[job.bucket]!.extraFields[i]!;
    const address = slotAddress(data.plan, job.slot) + data.plan.extraFields[i]! + job.row * rowBytes;
    try {
      copiers[i]!.copy(bytes, new Uint8Array(data.memory.buffer, address, rowBytes));
    } catch (error) {
      if (error instanceof OtherNpyRow) throw new OtherArray(field, error);
      if (error instanceof NpyError) {
        throw new SampleDecodeError({}, `its field "${field}" is not what its name says (${error.message})`);
      }
      throw error;
    }
  }
}

/** The array of a field cannot be a row of its batch. */
class OtherArray extends Error {
  readonly field: string;

  constructor(field: string, { message }: OtherNpyRow) {
    super(message);
    this.field = field;
  }
}

/** Writes the annotations of the image into its row of the slot. */
function writeObjects({ slot, row, bucket }: Job, { annotations: placed }: Decoder): void {
  if (placed === null) return;
  const part = data.extraFields.length;
  const { extraFields, rowBytes } = data.plan;
  const address = slotAddress(data.plan, slot) + extraFields[part]! + row * rowBytes[bucket]!.extraFields[part]!;
  writeRecord(placed, record!, annotations!.boxFormat, data.memory.buffer, address);
}

/** The crop index of an image. Null if it is damaged: then the image is decoded without it. */
function cropIndexAt({ cropOffset, cropBytes, crc32: imageCrc32 }: Job): Uint8Array | null {
  const stored = arenaView(data.arena, cropOffset, cropBytes);
  return imageCrc32 === UNCHECKED ? cropIndexOf(stored) : checkedCropIndex(stored, imageCrc32);
}

/** Reports a bad sample. Any other error ends this worker, and with it the loop, with the error as the reason. */
function report(error: unknown, { slot, row }: Job): void {
  if (error instanceof OtherArray) post({ kind: 'bad', slot, row, reason: error.message, otherArray: error.field });
  else if (error instanceof OtherSize) post({ kind: 'bad', slot, row, reason: error.reason, isOtherSize: true });
  else if (error instanceof SampleDecodeError) post({ kind: 'bad', slot, row, reason: partsOf(error) });
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

/** The extra fields and annotations of an image. */
interface Accompanied {
  readonly images: readonly ExtraFieldImage[];
  /** The bytes of the fields that a step looks at. */
  readonly fields: Readonly<Record<string, Uint8Array>>;
  readonly given: GivenAnnotations | null;
}
const NOTHING: Accompanied = { images: [], fields: {}, given: null };

function extraFieldsOf(job: Job): Accompanied {
  const images: ExtraFieldImage[] = [];
  const fields = nameTable<Uint8Array>();
  const annotated = nameTable<Uint8Array>();
  for (const [i, { field, kind }] of data.extraFields.entries()) {
    const part = parts.get(job.slot, job.row, i);
    if (part === null) {
      if (kind === 'field') continue;
      throw new SampleDecodeError({}, `it has no field "${field}"`);
    }
    if (kind === 'columns') {
      annotated[field] = texts.get(job.slot, part);
      continue;
    }
    const bytes = payloadOf(part, field);
    if (kind === 'field') fields[field] = bytes;
    else if (kind === 'annotation') annotated[field] = bytes;
    else if (kind !== 'array') {
      const rowBytes = data.plan.rowBytes[job.bucket]!.extraFields[i]!;
      const target = slotAddress(data.plan, job.slot) + data.plan.extraFields[i]! + job.row * rowBytes;
      images.push({ field, kind, bytes, target });
    }
  }
  return { images, fields, given: annotations && readAnnotations(annotations, annotated) };
}

/** The bytes of an extra field as they were packed. Their checksum is checked, unless checks are off. */
function payloadOf(part: Part, field: string): Uint8Array {
  const stored = arenaView(data.arena, part.offset, part.bytes);
  let payload: Uint8Array;
  try {
    payload = fieldPayload(stored, part.msgpack);
  } catch (cause) {
    throw new SampleDecodeError({}, `its field "${field}" ${notAValue(cause)}`);
  }
  checkBytes(payload, part.crc32, `its field "${field}"`);
  return payload;
}

function checkBytes(bytes: Uint8Array, expected: number, what: string): void {
  if (expected === UNCHECKED) return;
  const actual = crc32(bytes);
  if (actual !== expected) throw new SampleDecodeError({}, `${what} ${changedSincePacked(actual, expected)}`);
}

// An error ends the thread. Awaiting here would require an ES module, which takes longer to load than CommonJS.
run().catch((thrown: unknown) => {
  process.nextTick(() => {
    throw thrown;
  });
});
