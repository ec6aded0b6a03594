import { setTimeout as sleep } from 'node:timers/promises';
import type { WakeSignal } from '@shardtool/base';
import { OptionError, optionName, type Sentence, sentence } from '@shardtool/base';
import type { FieldColumns } from '@shardtool/format';
import { columnsText } from '../../annotations/columns-text.js';
import { type CutShards, cutReason } from '../../dataset/cut-shards.js';
import type { EpochPlan, PlannedBatch } from '../../order/batches.js';
import { type Block, type BlockReader, locate, placeOf } from '../read/block.js';
import { raggedImagesIn } from '../read/ragged-columns.js';
import type { Demand } from '../read/readers/block-reader.js';
import type { BatchReader } from '../read/readers/bucket-reader.js';
import { keptImageColumn } from '../read/readers/image-column.js';
import type { Stretch } from '../read/readers/stretches.js';
import type { BatchFacts } from '../ring/batch-facts.js';
import type { ColumnTexts } from '../ring/column-texts.js';
import type { Control } from '../ring/control.js';
import type { ExtraField, Part, PartTable } from '../ring/extra-fields.js';
import type { FreeSlots } from '../ring/free-slots.js';
import { emptyJob, IN_ARENA, type Job, UNCHECKED, wholeBatchJob } from '../ring/job.js';
import type { SampleOrigin } from '../setup/order-sources.js';
import type { RaggedImages } from '../setup/ragged-images.js';
import { BlockedTime } from './blocked-time.js';
import { PendingBatch } from './pending-batch.js';

/**
 * An epoch for the feeder: its plan, the source of its blocks, and whether the crc32 of its images and fields is
 * checked.
 */
export interface FedEpoch {
  readonly epoch: number;
  readonly plan: EpochPlan;
  readonly reader: BlockReader;
  /** The same reader, if batches consist of waiting samples; otherwise null. */
  readonly batchReader: BatchReader | null;
  readonly checksum: boolean;
  /** Whether later epochs need no checks if no sample of this epoch is bad. */
  readonly provesAll: boolean;
  /** Index of the transform of the epoch. */
  readonly transform: number;
}

export interface FeederOptions {
  readonly control: Control;
  readonly wakeSignal: WakeSignal;
  /** Number of all batch slots. */
  readonly slots: number;
  readonly freeSlots: FreeSlots;
  readonly image: string | undefined;
  /** False: rows have only extra fields. */
  readonly hasImages: boolean;
  readonly extraFields: readonly ExtraField[];
  /** The images of each sample, if their number varies. Null if each sample has one. */
  readonly ragged: RaggedImages | null;
  readonly parts: PartTable;
  readonly texts: ColumnTexts;
  readonly facts: BatchFacts;
  /** Batches are processed as a whole when all of their rows are finished. */
  readonly whole: boolean;
  /** Names of the fields that are delivered with the batches. */
  readonly fields: readonly string[];
  readonly origin: SampleOrigin;
  /** Shards whose bytes in memory are zeros from their end on. */
  readonly cuts: CutShards;
  /** The consumer may read the read buffers while it waits for a batch. */
  readonly bytesAreHeld: boolean;
  /** All samples are read before the first epoch. */
  readonly readsAllFirst: boolean;
  /** The next epoch to feed, or null after the last. */
  nextEpoch(demand: Demand): Promise<FedEpoch | null>;
  /** The error that ended the workers. Undefined while they work. */
  failure(): Error | undefined;
  /** Called when a batch has got its slot. Jobs and messages about it may follow. */
  onOpen(pending: PendingBatch): void;
  /** Called for a row whose sample has no image. */
  onUnusable(pending: PendingBatch, row: number, reason: string | Sentence): void;
}

/** Number of jobs after which sleeping workers are notified. */
const NOTIFY_EVERY = 16;

/**
 * Turns plans into jobs: takes a free slot for each batch, waits for the blocks that its rows need, and publishes a job
 * for each row. It runs ahead of the consumer by at most the number of slots.
 */
export class Feeder implements Demand {
  readonly #options: FeederOptions;
  /** Since when no row could be assigned, and the total of earlier such periods. */
  readonly blocked = new BlockedTime();
  readonly #pending: PendingBatch[] = [];
  readonly #job = emptyJob();
  #reader: BlockReader | null = null;
  /** The batch whose rows are being assigned, and the last one that the consumer requested. */
  #filling: PendingBatch | null = null;
  #awaited: PendingBatch | null = null;
  #needsSlot = false;
  #closed = false;
  #ended = false;
  #failure: { readonly error: unknown } | null = null;
  #stop: { readonly reason: unknown } | null = null;
  readonly #run: Promise<void>;

  constructor(options: FeederOptions) {
    this.#options = options;
    this.#run = this.#feed();
  }

  /**
   * Returns the oldest batch that was not taken yet, which may be incomplete, or null at the end. If reading failed,
   * throws after all batches before the failure were taken. If the consumer holds all slots, throws at once, because it
   * would wait forever.
   */
  async next(): Promise<PendingBatch | null> {
    for (;;) {
      this.throwIfStopped();
      const pending = this.#pending.shift();
      if (pending !== undefined) {
        this.#awaited = pending;
        // Wakes a reader that waits for memory, because no memory will become free.
        this.#options.wakeSignal.notify();
        return pending;
      }
      if (this.#failure !== null) throw this.#failure.error;
      if (this.#ended) return null;
      const failure = this.#options.failure();
      if (failure !== undefined) throw failure;
      if (this.#needsSlot && this.#options.freeSlots.isEmpty) throw allSlotsHeld(this.#options.slots);
      await this.#options.wakeSignal.wait();
    }
  }

  /** Throws if the batch can no longer become complete, unless the workers are the reason. */
  check(pending: PendingBatch): void {
    this.throwIfStopped();
    if (this.#failure !== null && !pending.isIssued) throw this.#failure.error;
  }

  throwIfStopped(): void {
    if (this.#stop !== null) throw this.#stop.reason;
  }

  /** Number of batches that are ready, but were not requested yet. */
  get ready(): number {
    const { slots } = this.#options.control;
    return this.#pending.filter((pending) => pending.isIssued && slots.state(pending.slot) === 'ready').length;
  }

  isUrgent(): boolean {
    return this.#awaited !== null && this.#awaited === this.#filling;
  }

  get isOver(): boolean {
    return this.#closed;
  }

  async settle(): Promise<boolean> {
    const { control, bytesAreHeld } = this.#options;
    while (!bytesAreHeld && !this.#closed && this.#filling !== null) {
      if (control.slots.finished(this.#filling.slot) >= this.#filling.given) return true;
      await sleep(1);
    }
    return false;
  }

  /** All rows of the batch are finished, so the memory of its used blocks is free. */
  retire(pending: PendingBatch): void {
    for (const block of pending.finished) block.reader.release(block);
    pending.finished.length = 0;
    pending.letGo?.();
    pending.letGo = null;
  }

  /** Ends the iteration. Pending and later requests for a batch reject with the reason at once. */
  stop(reason: unknown): void {
    this.#stop ??= { reason };
    this.#wake();
  }

  /** Stops feeding and reading; resolves when all work has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#options.wakeSignal.notify();
    await this.#reader?.close();
    await this.#run;
  }

  /** Publishes the job of one row, from the block and item that `pending` names for it. */
  push(pending: PendingBatch, row: number): void {
    const { control, origin, cuts, image, hasImages, extraFields, facts, whole, ragged } = this.#options;
    const block = pending.blocks[row]!;
    const item = pending.items[row]!;
    const shard = block.shard[item]!;
    const indexRow = block.row[item]!;
    const { index, stretches, crops } = block.shards.get(shard)!;
    const column = hasImages && ragged === null ? keptImageColumn(index, image) : null;
    const offset = column === null ? 0 : column.offset[indexRow]!;
    const job = this.#job;
    pending.labels[row] = index.cls[indexRow]!;
    job.number = origin.firstSample[shard]! + indexRow;
    pending.numbers[row] = job.number;
    job.source = origin.sourceOfShard === null ? 0 : origin.sourceOfShard[shard]!;
    pending.sources[row] = job.source;
    if (pending.imageOffsets !== null) pending.imageOffsets[row + 1] = pending.imageOffsets[row]!;
    if (offset < 0) {
      this.#options.onUnusable(pending, row, 'it has no image');
      return;
    }
    const end = block.inShards ? Number.POSITIVE_INFINITY : cuts.endOf(shard);
    const needed = index.offset[indexRow]! + index.bytes[indexRow]!;
    if (needed > end) {
      this.#options.onUnusable(pending, row, cutReason({ end, needed }));
      return;
    }
    if (ragged !== null) {
      const images = this.#placeImages(pending, row, ragged);
      if (images > ragged.max) {
        this.#options.onUnusable(pending, row, tooManyImages(images, ragged.max));
        return;
      }
      pending.imageOffsets![row + 1] = pending.imageOffsets![row]! + images;
      facts.setFirstImage(pending.slot, row, pending.imageOffsets![row]!);
    }
    job.shard = block.inShards ? shard : IN_ARENA;
    job.offset = column === null ? 0 : placeOf(block, stretches, offset);
    job.bytes = column === null ? 0 : column.bytes[indexRow]!;
    job.epoch = block.pass;
    job.occurrence = block.occurrence[item]!;
    job.slot = pending.slot;
    job.row = row;
    job.bucket = pending.bucket;
    job.orientation = index.orientation[indexRow]!;
    job.crc32 = (pending.checksum ? column?.crc32?.[indexRow] : undefined) ?? UNCHECKED;
    // The crop index is that of the image that is used if the option `image` is not set.
    job.cropBytes = crops === null || column !== keptImageColumn(index, undefined) ? 0 : crops.columns.bytes[indexRow]!;
    if (job.cropBytes > 0) job.cropOffset = placeOf(block, crops!.stretches, crops!.columns.offset[indexRow]!);
    if (whole) {
      facts.setLabel(pending.slot, row, pending.labels[row]!);
      if (row === 0) facts.setFirst(pending.slot, job);
    }
    const unplaced = extraFields.length === 0 ? null : this.#placeParts(block, item, job, pending.checksum);
    if (unplaced === null) control.push(job);
    else this.#options.onUnusable(pending, row, unplaced);
  }

  /** Number of images that a row will have in a batch with several images per sample; 0 if its sample cannot be used. */
  imagesOf(pending: PendingBatch, row: number): number {
    const { cuts, ragged } = this.#options;
    const block = pending.blocks[row]!;
    const item = pending.items[row]!;
    const { index, indexRow } = locate(block, item);
    const images = raggedImagesIn(index, indexRow, ragged!.patterns).length;
    const isCut = index.offset[indexRow]! + index.bytes[indexRow]! > cuts.endOf(block.shard[item]!);
    return isCut || images > ragged!.max ? 0 : images;
  }

  /** Writes where the images of the sample are. Returns their number, which may be too high. */
  #placeImages(pending: PendingBatch, row: number, { patterns, max }: RaggedImages): number {
    const block = pending.blocks[row]!;
    const { index, indexRow, stretches } = locate(block, pending.items[row]!);
    const images = raggedImagesIn(index, indexRow, patterns);
    for (let i = 0; i < max; i++) {
      const column = images[i]?.column;
      this.#options.parts.set(
        pending.slot,
        row,
        i,
        column === undefined ? null : partOf(block, column, { indexRow, stretches, isChecked: pending.checksum }),
      );
    }
    return images.length;
  }

  /** Publishes the job of the batch as a whole. */
  pushWhole(pending: PendingBatch): void {
    const { control } = this.#options;
    control.push(wholeBatchJob(pending.slot, pending.bucket));
    control.notify();
  }

  /** Returns the reason why the sample cannot be used, or null. */
  #placeParts(block: Block, item: number, { slot, row }: Job, checksum: boolean): string | null {
    const { extraFields, parts, texts } = this.#options;
    const { index, stretches } = block.shards.get(block.shard[item]!)!;
    const indexRow = block.row[item]!;
    for (const [i, { field, columns }] of extraFields.entries()) {
      if (columns !== undefined) {
        const place = texts.put(slot, columnsText(index.columns, columns, indexRow));
        if (place === null)
          return `its column "${field}" is too long to fit next to those of the other rows of its batch`;
        parts.set(slot, row, i, { ...place, crc32: UNCHECKED, msgpack: false });
        continue;
      }
      const column = index.fields.get(field);
      const offset = column?.offset[indexRow] ?? -1;
      const isThere = column !== undefined && offset >= 0;
      parts.set(slot, row, i, isThere ? partOf(block, column, { indexRow, stretches, isChecked: checksum }) : null);
    }
    return null;
  }

  #wake(): void {
    this.#options.wakeSignal.notify();
    this.#options.control.slots.wake();
  }

  /** Never rejects. Errors are thrown to the caller that waits for a batch. */
  async #feed(): Promise<void> {
    try {
      for (let fed = await this.#nextEpoch(); fed !== null; fed = await this.#nextEpoch()) await this.#feedEpoch(fed);
    } catch (error) {
      this.#failure = { error };
    }
    this.#ended = true;
    this.#wake();
  }

  async #nextEpoch(): Promise<FedEpoch | null> {
    if (this.#closed) return null;
    const { blocked } = this;
    blocked.begin(this.#options.readsAllFirst ? 'storage' : 'order');
    const fed = await this.#options.nextEpoch(this).finally(() => blocked.end());
    this.#reader = fed?.reader ?? null;
    if (!this.#closed) return fed;
    await this.#reader?.close();
    return null;
  }

  async #feedEpoch(fed: FedEpoch): Promise<void> {
    const { control, fields, ragged } = this.#options;
    let last: PendingBatch | null = null;
    for (const planned of fed.plan.rows()) {
      if (planned.block.length === 0) {
        if (fed.batchReader !== null) await this.#walk(fed.batchReader, planned, 'order');
        continue;
      }
      const slot = await this.#freeSlot();
      if (this.#closed) return;
      const pending = new PendingBatch(slot, planned, fed, fields, ragged !== null);
      control.slots.open(slot, pending.rows, this.#options.whole);
      this.#options.texts.clear(slot);
      this.#options.onOpen(pending);
      this.#filling = pending;
      this.#pending.push(pending);
      this.#options.wakeSignal.notify();
      if (fed.batchReader !== null) await this.#walk(fed.batchReader, planned, 'storage');
      if (this.#closed) return;
      await this.#fill(pending, fed.reader);
      if (this.#closed) return;
      pending.letGo = fed.batchReader?.done(planned, pending.blocks) ?? null;
      pending.issuedAt = performance.now();
      pending.blockedAtIssue = this.blocked.now();
      this.#filling = null;
      last = pending;
    }
    fed.batchReader?.finish();
    if (last !== null) last.provesAll = fed.provesAll;
  }

  /** Reads until the samples of the batch are available. */
  async #walk(reader: BatchReader, planned: PlannedBatch, cause: 'storage' | 'order'): Promise<void> {
    this.blocked.begin(cause);
    await reader.walk(planned).finally(() => this.blocked.end());
  }

  async #freeSlot(): Promise<number> {
    const { freeSlots, wakeSignal } = this.#options;
    if (freeSlots.isEmpty) {
      this.#needsSlot = true;
      // A consumer that waits although it holds all slots would wait forever, so it gets an error.
      wakeSignal.notify();
      while (freeSlots.isEmpty && !this.#closed) await wakeSignal.wait();
      this.#needsSlot = false;
    }
    return this.#closed ? -1 : freeSlots.take()!;
  }

  async #fill(pending: PendingBatch, reader: BlockReader): Promise<void> {
    const { control } = this.#options;
    const { block: ordinals, item: items } = pending.planned;
    for (let row = 0; row < ordinals.length; row++) {
      const found = reader.get(ordinals[row]!, items[row]!);
      let block: Block;
      if (found instanceof Promise) {
        control.notify();
        this.blocked.begin('storage');
        block = await found.finally(() => this.blocked.end());
        if (this.#closed) return;
      } else block = found;
      pending.blocks[row] = block;
      this.push(pending, row);
      pending.given = row + 1;
      if (pending.planned.bucket === undefined) {
        block.left--;
        if (block.left === 0) pending.finished.push(block);
      }
      if (row % NOTIFY_EVERY === NOTIFY_EVERY - 1) control.notify();
    }
    control.notify();
  }
}

/** Where a field of a sample is in memory. */
function partOf(
  block: Block,
  column: FieldColumns,
  {
    indexRow,
    stretches,
    isChecked,
  }: { readonly indexRow: number; readonly stretches: readonly Stretch[]; readonly isChecked: boolean },
): Part {
  return {
    offset: placeOf(block, stretches, column.offset[indexRow]!),
    bytes: column.bytes[indexRow]!,
    crc32: (isChecked ? column.crc32?.[indexRow] : undefined) ?? UNCHECKED,
    msgpack: column.msgpack?.[indexRow] === 1,
  };
}

function tooManyImages(images: number, max: number): Sentence {
  return sentence`it has ${images} images, more than the option ${optionName('maxImages')} allows (${max}): raise the option ${optionName('maxImages')}`;
}

function allSlotsHeld(slots: number): OptionError {
  return new OptionError(
    {},
    sentence`All ${slots} batch slots are in use: call release() on batches that you no longer need, or raise ${optionName('prefetchBatches')}.`,
  );
}
