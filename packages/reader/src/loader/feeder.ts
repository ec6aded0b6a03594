import type { ShardIndex } from '@shardtool/format';
import type { EpochPlan } from '../order/batches.js';


import { type Block, type BlockReader, placeOf } from './block.js';
import { type Control, emptyJob } from './control.js';
import { imageColumn } from './image-column.js';
import { PendingBatch } from './pending-batch.js';
import { Signal } from './signal.js';

/** One epoch that is to be fed: its plan, where its blocks come from, and whether its images' crc32 is checked. */
export interface FedEpoch {
  readonly epoch: number;
  readonly plan: EpochPlan;
  readonly reader: BlockReader;
  readonly checksum: boolean;
}

export interface FeederOptions {
  readonly control: Control;
  readonly slots: number;
  readonly image: string | undefined;
  /** Number in the dataset of a shard's first sample. */
  readonly firstSample: Float64Array;
  /** The next epoch to feed, or null after the last. */
  nextEpoch(): Promise<FedEpoch | null>;
  /** A batch got its slot; jobs and messages about it may follow. */
  onOpen(pending: PendingBatch): void;
  /** The sample of a row has no image. */
  onMissingImage(pending: PendingBatch, row: number): void;
}

/** Jobs are announced to sleeping workers in lots of this size. */
const RING_EVERY = 16;

/**
 * Turns plans into jobs: takes a free slot for each batch, waits for the blocks that its rows need, and publishes a job
 * a row. It runs ahead of the consumer by the number of slots and no further.
 */
export class Feeder {
  readonly #options: FeederOptions;
  readonly #free: number[];
  readonly #pending: PendingBatch[] = [];
  readonly #changed = new Signal();
  readonly #job = emptyJob();
  #reader: BlockReader | null = null;
  #closed = false;
  #ended = false;
  #failure: unknown;
  readonly #run: Promise<void>;

  constructor(options: FeederOptions) {
    this.#options = options;
    this.#free = Array.from({ length: options.slots }, (_, slot) => options.slots - 1 - slot);
    this.#run = this.#feed().then(
      () => this.#end(),
      (error: unknown) => this.fail(error),
    );
  }

  /** Why no more batches can come, if so. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Slots that are in use, the one being filled included. */
  get slotsInUse(): number {
    return this.#options.slots - this.#free.length;
  }

  /** The oldest batch that was not yet taken; null when there are no more. It may not be full yet. */
  async next(): Promise<PendingBatch | null> {
    for (;;) {
      const pending = this.#pending.shift();
      if (pending !== undefined) return pending;
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended || this.#closed) return null;
      await this.#changed.wait();
    }
  }

  /** Every slot is held by the consumer and none is under way: waiting for a batch would be for ever. */
  get isStarved(): boolean {
    return this.#pending.length === 0 && this.#free.length === 0;
  }

  /** All rows of the batch are done with: the memory of its used-up blocks is free. */
  retire(pending: PendingBatch): void {
    for (const block of pending.finished) block.reader.release(block);
    pending.finished.length = 0;
  }

  /** The slot may be filled again. */
  freeSlot(slot: number): void {
    this.#free.push(slot);
    this.#changed.ring();
  }

  /** Stops feeding and reading; resolves when nothing of it is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#changed.ring();
    await this.#reader?.close();
    await this.#run;
  }

  /** No more batches come, and whoever waits for one hears why. */
  fail(reason: unknown): void {
    this.#failure ??= reason;
    this.#end();
  }

  #end(): void {
    this.#ended = true;
    this.#changed.ring();
    this.#options.control.wake();
  }

  async #feed(): Promise<void> {
    for (let fed = await this.#options.nextEpoch(); fed !== null; fed = await this.#options.nextEpoch()) {
      this.#reader = fed.reader;
      for (const planned of fed.plan.rows()) {
        while (this.#free.length === 0 && !this.#closed) await this.#changed.wait();
        if (this.#closed) return;
        const pending = new PendingBatch(this.#free.pop()!, fed.epoch, fed.checksum, planned);
        this.#options.control.openSlot(pending.slot, pending.rows);
        this.#options.onOpen(pending);
        this.#pending.push(pending);
        this.#changed.ring();
        await this.#fill(pending, fed);
        if (this.#closed) return;
      }
    }
  }

  async #fill(pending: PendingBatch, fed: FedEpoch): Promise<void> {
    const { control } = this.#options;
    const { block: ordinals } = pending.planned;
    for (let row = 0; row < ordinals.length; row++) {
      const found = fed.reader.get(ordinals[row]!);
      let block: Block;
      if (found instanceof Promise) {
        control.ring();
        block = await found;
        if (this.#closed) return;
      } else block = found;
      pending.blocks[row] = block;
      this.push(pending, row);
      block.left--;
      if (block.left === 0) pending.finished.push(block);
      if (row % RING_EVERY === RING_EVERY - 1) control.ring();
    }
    control.ring();
    pending.issuedAt = performance.now();
  }

  /** Publishes the job of one row, from the block and item that `pending` names for it. */
  push(pending: PendingBatch, row: number): void {
    const { control, firstSample, image } = this.#options;
    const block = pending.blocks[row]!;
    const item = pending.items[row]!;
    const shard = block.shard[item]!;
    const indexRow = block.row[item]!;
    const { index, stretches } = block.shards.get(shard)!;
    const column = imageColumn(index, image);
    const offset = column.offset[indexRow]!;
    const job = this.#job;
    pending.labels[row] = index.cls[indexRow]!;
    job.number = firstSample[shard]! + indexRow;
    pending.numbers[row] = job.number;
    if (offset < 0) {
      this.#options.onMissingImage(pending, row);
      return;
    }
    job.offset = placeOf(stretches, offset);
    job.bytes = column.bytes[indexRow]!;
    job.epoch = block.pass;
    job.occurrence = block.occurrence[item]!;
    job.slot = pending.slot;
    job.row = row;
    job.orientation = orientationOf(index, indexRow);
    job.crc32 = pending.checksum ? column.crc32[indexRow]! : -1;
    control.push(job);
  }
}

function orientationOf(index: ShardIndex, row: number): number {
  return index.orientation[row]! || 1;
}
