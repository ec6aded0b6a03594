import { range, Sentence, sentence } from '@shardtool/base';
import { locate } from '../read/block.js';
import { isChanged } from '../read/fetch-again.js';
import { raggedImagesIn } from '../read/ragged-columns.js';
import { imageBytesOf } from '../setup/decoder-output.js';
import type { LabelSource } from '../setup/labels-option.js';
import type { WorkerMessage } from '../work/decode-worker.js';
import type { Engine } from '../work/engine.js';
import type { Feeder } from './feed/feeder.js';
import type { RowJobs } from './feed/row-jobs.js';
import type { PendingBatch } from './pending-batch.js';
import { type BadRowOptions, countBadRows, judgeRow, stepError } from './rows/bad-rows.js';
import { readFields } from './rows/row-fields.js';
import type { TextChoice } from './rows/text-choice.js';

export interface DeliveryOptions {
  readonly engine: Engine;
  readonly jobs: RowJobs;
  readonly badRows: BadRowOptions;
  /** Null: texts are delivered unchanged. */
  readonly captionSampling: TextChoice | null;
  /** Source of labels that are not class numbers. */
  readonly labels: LabelSource | null;
  /** True if batches are processed as a whole: by a custom step, or to mix them. */
  readonly whole: boolean;
}

/** Waits until batches are complete, and has their bad rows handled. */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #underWay = new Map<number, PendingBatch>();

  constructor(options: DeliveryOptions) {
    this.#options = options;
    options.engine.listen((message) => this.#hear(message));
  }

  /** Keeps the workers' messages about this batch with it from now on. */
  expect(pending: PendingBatch): void {
    this.#underWay.set(pending.slot, pending);
  }

  /** The batch is complete, so later messages about its slot are about another batch. */
  forget(pending: PendingBatch): void {
    this.#underWay.delete(pending.slot);
  }

  /**
   * Resolves when every row is decoded or handled. Throws the error that ended the workers or the reading, or that of a
   * bad sample.
   */
  async whenComplete(pending: PendingBatch, feeder: Feeder): Promise<void> {
    let rows = range(pending.rows);
    for (;;) {
      await this.#whenFull(pending, feeder);
      pending.decodedAt = Math.min(pending.decodedAt, performance.now());
      for (const row of rows) this.#readFields(pending, row);
      if (pending.bad.length === 0) break;
      rows = await this.#handleBad(pending);
    }
    if (this.#options.whole) await this.#whenWhole(pending, feeder);
    countBadRows(pending, this.#options.badRows);
  }

  /**
   * Handles the rows that were reported as bad: their bytes are fetched again, or the samples are skipped or replaced.
   * Issues the jobs that this needs. Returns all rows that were bad.
   */
  async #handleBad(pending: PendingBatch): Promise<number[]> {
    // Several parts of a row may be bad, such as its image and a field.
    const bad = new Map(pending.bad.map((trouble) => [trouble.row, trouble]));
    pending.bad = [];
    const rows = [...bad.keys()].sort((a, b) => a - b);
    const begun = performance.now();
    const fetched = await this.#fetchAgain(
      pending,
      rows.filter((row) => !bad.get(row)!.dropped),
    );
    const again = rows.filter((row) => fetched.has(row) || judgeRow(pending, bad.get(row)!, this.#options.badRows));
    // The first blocks may contain only the samples of the first batches so far. A replacement may need another
    // sample.
    for (const row of again) await pending.blocks[row]!.whole;
    if (pending.imageOffsets !== null) this.#moveImages(pending, new Set(again));
    pending.againMs += performance.now() - begun;
    this.#decodeAgain(pending, again);
    return rows;
  }

  /** Name of the field with an image of a sample that has several. */
  #fieldOfImage(pending: PendingBatch, row: number, image: number): string | null {
    const { output } = this.#options.badRows;
    if (output.kind !== 'pixels' || output.ragged === null) return null;
    const { index, indexRow } = locate(pending.blocks[row]!, pending.items[row]!);
    return raggedImagesIn(index, indexRow, output.ragged.patterns)[image]?.field ?? null;
  }

  /**
   * Moves the images of finished rows to where they are after bad samples were skipped or replaced by samples with
   * another number of images. All rows are finished, so no worker writes to the slot.
   */
  #moveImages(pending: PendingBatch, again: ReadonlySet<number>): void {
    const { engine, jobs, badRows } = this.#options;
    const { rows, bucket } = pending;
    const offsets = pending.imageOffsets!;
    const before = offsets.slice();
    for (let row = 0; row < rows; row++) {
      const own = pending.skipped.has(row) ? 0 : before[row + 1]! - before[row]!;
      offsets[row + 1] = offsets[row]! + (again.has(row) ? jobs.imagesOf(pending, row) : own);
    }
    if (badRows.output.kind !== 'pixels') return;
    const imageBytes = imageBytesOf(badRows.output, badRows.output.sizes[bucket]!);
    const { images } = engine.contents(pending);
    const copy = images.slice(0, before[rows]! * imageBytes);
    for (let row = 0; row < rows; row++) {
      if (again.has(row) || pending.skipped.has(row)) continue;
      images.set(copy.subarray(before[row]! * imageBytes, before[row + 1]! * imageBytes), offsets[row]! * imageBytes);
    }
  }

  /**
   * Returns the rows whose wrong bytes were fetched once more. Bytes may have changed in transit, so each row is
   * fetched again at most once.
   */
  async #fetchAgain(pending: PendingBatch, rows: readonly number[]): Promise<ReadonlySet<number>> {
    const { arena } = this.#options.engine;
    const fetched = new Set<number>();
    await Promise.all(
      rows.map(async (row) => {
        const block = pending.blocks[row]!;
        const item = pending.items[row]!;
        if (block.reader.fetchAgain === undefined || pending.fetchedAgain.get(row) === item) return;
        if (!isChanged(block, item, arena) || !(await block.reader.fetchAgain(block, item))) return;
        this.#options.badRows.statistics.countFetchedAgain();
        pending.fetchedAgain.set(row, item);
        fetched.add(row);
      }),
    );
    return fetched;
  }

  #hear(message: WorkerMessage): void {
    if (message.kind === 'ready') return;
    const pending = this.#underWay.get(message.slot);
    if (pending === undefined) return;
    pending.messages++;
    if (message.kind === 'bad') {
      const reason = typeof message.reason === 'string' ? message.reason : new Sentence(message.reason);
      const field = message.image === undefined ? null : this.#fieldOfImage(pending, message.row, message.image);
      pending.bad.push({ ...message, reason: field === null ? reason : sentence`its field "${field}": ${reason}` });
    } else pending.list[message.row] = { pixels: message.pixels, height: message.height, width: message.width };
    this.#options.engine.wakeSignal.notify();
  }

  /**
   * Issues jobs that decode rows again. If the batch was already processed as a whole, all of its rows are decoded
   * again.
   */
  #decodeAgain(pending: PendingBatch, rows: readonly number[]): void {
    const { engine, jobs, whole } = this.#options;
    const { control } = engine;
    const { slots } = control;
    if (whole && slots.state(pending.slot) === 'ready') {
      slots.open(pending.slot, pending.rows, true);
      // Handles the row as if a worker had reported a fault: this thread first reads all fields again.
      slots.countPosted(pending.slot);
      pending.messages = 1;
      for (let row = 0; row < pending.rows; row++) {
        if (pending.skipped.has(row)) slots.finish(pending.slot);
        else jobs.push(pending, row);
      }
    } else if (rows.length > 0) {
      slots.reopen(pending.slot, rows.length);
      for (const row of rows) jobs.push(pending, row);
    }
    control.notify();
  }

  /**
   * If no row of a batch had a message, the worker that finishes its last row processes the whole batch. Otherwise it
   * is processed when its bad rows are replaced.
   */
  async #whenWhole(pending: PendingBatch, feeder: Feeder): Promise<void> {
    const { engine, jobs } = this.#options;
    const { slots } = engine.control;
    if (slots.state(pending.slot) === 'whole' && slots.posted(pending.slot) > 0) jobs.pushWhole(pending);
    while (slots.state(pending.slot) === 'whole') {
      this.#check(pending, feeder);
      await slots.whenLeft(pending.slot, 'whole');
    }
    await this.#whenHeard(pending, feeder);
  }

  /**
   * Resolves when every row is finished, with or without an error, and all messages of workers about them have arrived.
   */
  async #whenFull(pending: PendingBatch, feeder: Feeder): Promise<void> {
    const { slots } = this.#options.engine.control;
    while (slots.state(pending.slot) === 'filling') {
      this.#check(pending, feeder);
      await slots.whenLeft(pending.slot, 'filling');
    }
    // A reader may wait until it is known how long the reads of workers take.
    this.#options.engine.wakeSignal.notify();
    await this.#whenHeard(pending, feeder);
    // A batch without messages is being processed as a whole, and must not be changed during that time.
    if (this.#options.whole && pending.messages === 0) await this.#whenWhole(pending, feeder);
  }

  /** Resolves when all messages of workers about the batch have arrived. Throws the error of a custom step. */
  async #whenHeard(pending: PendingBatch, feeder: Feeder): Promise<void> {
    const { control, wakeSignal } = this.#options.engine;
    while (pending.messages < control.slots.posted(pending.slot)) {
      this.#check(pending, feeder);
      await wakeSignal.wait();
    }
    feeder.throwIfStopped();
    const thrown = pending.bad.filter(({ stack }) => stack !== undefined).sort((a, b) => a.row - b.row)[0];
    if (thrown !== undefined) throw stepError(pending, thrown, this.#options.badRows);
  }

  #check(pending: PendingBatch, feeder: Feeder): void {
    feeder.check(pending);
    const { failure } = this.#options.engine;
    if (failure !== undefined) throw failure;
  }

  #readFields(pending: PendingBatch, row: number): void {
    if (pending.skipped.has(row)) return;
    const { engine, captionSampling, labels } = this.#options;
    readFields(pending, row, engine, captionSampling, labels);
  }
}
