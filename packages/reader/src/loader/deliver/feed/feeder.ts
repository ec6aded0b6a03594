import { setTimeout as sleep } from 'node:timers/promises';
import type { WakeSignal } from '@shardtool/base';
import { OptionError, optionName, sentence } from '@shardtool/base';
import type { EpochPlan, PlannedBatch } from '../../../order/batches.js';
import type { Block, BlockReader } from '../../read/block.js';
import type { Demand } from '../../read/readers/block-reader.js';
import type { BatchReader } from '../../read/readers/bucket-reader.js';
import type { CheckedSamples } from '../../read/readers/checked-samples.js';
import type { ColumnTexts } from '../../ring/column-texts.js';
import type { Control } from '../../ring/control.js';
import type { FreeSlots } from '../../ring/free-slots.js';
import { PendingBatch } from '../pending-batch.js';
import { BlockedTime } from './blocked-time.js';
import type { RowJobs } from './row-jobs.js';

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
  /** Samples that need no further check, to which delivered samples are added. Null if every sample is checked each time. */
  readonly checked: CheckedSamples | null;
  /** Index of the transform of the epoch. */
  readonly transform: number;
}

export interface FeederOptions {
  readonly control: Control;
  readonly wakeSignal: WakeSignal;
  /** Number of all batch slots. */
  readonly slots: number;
  readonly freeSlots: FreeSlots;
  readonly jobs: RowJobs;
  readonly texts: ColumnTexts;
  /** The number of images of a sample varies. */
  readonly isRagged: boolean;
  /** Batches are processed as a whole when all of their rows are finished. */
  readonly whole: boolean;
  /** Names of the fields that are delivered with the batches. */
  readonly fields: readonly string[];
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
}

/** Number of jobs after which sleeping workers are notified. */
const NOTIFY_EVERY = 16;

/**
 * Turns plans into batches: takes a free slot for each batch, waits for the blocks that its rows need, and has a job
 * published for each row. It runs ahead of the consumer by at most the number of slots.
 */
export class Feeder implements Demand {
  readonly #options: FeederOptions;
  /** Since when no row could be assigned, and the total of earlier such periods. */
  readonly blocked = new BlockedTime();
  readonly #pending: PendingBatch[] = [];
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
    const { control, fields, isRagged } = this.#options;
    for (const planned of fed.plan.rows()) {
      if (planned.block.length === 0) {
        if (fed.batchReader !== null) await this.#walk(fed.batchReader, planned, 'order');
        continue;
      }
      const slot = await this.#freeSlot();
      if (this.#closed) return;
      const pending = new PendingBatch(slot, planned, fed, fields, isRagged);
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
    }
    fed.batchReader?.finish();
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
    const { control, jobs } = this.#options;
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
      jobs.push(pending, row);
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

function allSlotsHeld(slots: number): OptionError {
  return new OptionError(
    {},
    sentence`All ${slots} batch slots are in use: call release() on batches that you no longer need, or raise ${optionName('prefetchBatches')}.`,
  );
}
