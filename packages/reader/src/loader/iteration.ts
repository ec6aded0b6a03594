import { OptionError } from '@shardtool/format';
import type { Batch } from './batch.js';
import { type BatchOutput, Delivery } from './delivery.js';
import type { Engine } from './engine.js';
import { type FedEpoch, Feeder } from './feeder.js';
import type { PendingBatch } from './pending-batch.js';
import type { Statistics } from './statistics.js';

export interface IterationOptions {
  /** Starts the workers, or has them from the iteration before. */
  startEngine(): Promise<Engine>;
  nextEpoch(engine: Engine, mayFree: () => boolean): Promise<FedEpoch | null>;
  readonly statistics: Statistics;
  readonly slots: number;
  readonly image: string | undefined;
  readonly fields: readonly string[];
  readonly output: BatchOutput;
  readonly onBadSample: 'raise' | 'skip' | 'substitute';
  readonly release: 'auto' | 'manual';
  readonly firstSample: Float64Array;
  readonly signal: AbortSignal | undefined;
  shardName(shard: number): string;
  onDelivered(pending: PendingBatch): void;
  /** The iteration is over. `whole`: it came to its end, and the workers are idle. */
  onEnd(whole: boolean): Promise<void>;
}

/** One walk through the epochs: what `for await` holds. */
export class Iteration implements AsyncIterator<Batch, undefined> {
  readonly #options: IterationOptions;
  #engine: Engine | null = null;
  #feeder: Feeder | null = null;
  #delivery: Delivery | null = null;
  #current: Batch | null = null;
  #over = false;
  readonly #onAbort = () => this.#feeder?.fail(this.#options.signal?.reason);

  constructor(options: IterationOptions) {
    this.#options = options;
    options.signal?.addEventListener('abort', this.#onAbort);
  }

  async next(): Promise<IteratorResult<Batch, undefined>> {
    if (this.#over) return { done: true, value: undefined };
    try {
      const askedAt = this.#options.statistics.asked();
      if (this.#options.release === 'auto') this.#current?.release();
      this.#current = null;
      this.#options.signal?.throwIfAborted();
      if (this.#engine === null) await this.#start();
      const batch = await this.#nextBatch(askedAt);
      if (batch === null) {
        await this.#end(true);
        return { done: true, value: undefined };
      }
      this.#current = batch;
      return { done: false, value: batch };
    } catch (error) {
      await this.#end(false);
      throw error;
    }
  }

  /** Ends the iteration early: what `break` calls. */
  async return(): Promise<IteratorResult<Batch, undefined>> {
    await this.#end(false);
    return { done: true, value: undefined };
  }

  async #start(): Promise<void> {
    const { slots, image, firstSample, signal } = this.#options;
    const engine = await this.#options.startEngine();
    this.#engine = engine;
    const delivery = new Delivery({ ...this.#options, engine });
    this.#delivery = delivery;
    const feeder: Feeder = new Feeder({
      control: engine.control,
      slots,
      image,
      firstSample,
      nextEpoch: () => this.#options.nextEpoch(engine, () => feeder.slotsInUse > 1),
      onOpen: (pending) => delivery.expect(pending),
      onMissingImage: (pending, row) => delivery.reject(pending, row, 'it has no image'),
    });
    this.#feeder = feeder;
    signal?.throwIfAborted();
  }

  async #nextBatch(askedAt: number): Promise<Batch | null> {
    const { statistics, output, release: mode } = this.#options;
    const engine = this.#engine!;
    const feeder = this.#feeder!;
    if (feeder.isStarved) {
      throw new OptionError(
        {},
        `All ${this.#options.slots} batch slots are held: call release() on batches that are used up, or raise prefetchBatches.`,
      );
    }
    engine.ref();
    try {
      const pending = await feeder.next();
      if (pending === null) return null;
      await this.#delivery!.whenComplete(pending, feeder);
      statistics.delivered(pending.rows, askedAt, pending.issuedAt);
      const keepsBytes = output.kind === 'raw';
      const batch = this.#delivery!.batch(pending, () => {
        if (this.#over) return;
        if (keepsBytes) feeder.retire(pending);
        feeder.freeSlot(pending.slot);
      });
      if (!keepsBytes) feeder.retire(pending);
      this.#options.onDelivered(pending);
      if (mode === 'auto') this.#current = batch;
      return batch;
    } finally {
      engine.unref();
    }
  }

  async #end(whole: boolean): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    await this.#feeder?.close();
    await this.#options.onEnd(whole);
  }
}
