import { OptionError } from '@shardtool/format';
import type { Batch } from './batch.js';
import { Delivery, type DeliveryOptions } from './delivery.js';
import type { Engine } from './engine.js';
import { type FedEpoch, Feeder } from './feeder.js';
import type { PendingBatch } from './pending-batch.js';

export interface IterationOptions extends DeliveryOptions {
  readonly engine: Engine;
  /** The next epoch to feed, or null after the last. `mayFree`: whether memory will be given back without more reading. */
  nextEpoch(mayFree: () => boolean): Promise<FedEpoch | null>;
  readonly release: 'auto' | 'manual';
  /** Number in the dataset of each shard's first sample. */
  readonly firstSample: Float64Array;
  readonly signal: AbortSignal | undefined;
  onDelivered(pending: PendingBatch): void;
}

/** One walk through the epochs: batches are made ahead and handed out one by one. */
export class Iteration {
  readonly #options: IterationOptions;
  readonly #delivery: Delivery;
  readonly #feeder: Feeder;
  #current: Batch | null = null;
  #over = false;
  readonly #onAbort = () => this.#feeder.fail(this.#options.signal?.reason);

  constructor(options: IterationOptions) {
    const { engine, image, firstSample, signal } = options;
    this.#options = options;
    const delivery = new Delivery(options);
    this.#delivery = delivery;
    const feeder: Feeder = new Feeder({
      control: engine.control,
      slots: engine.plan.slots,
      image,
      firstSample,
      nextEpoch: () => options.nextEpoch(() => feeder.slotsInUse > 1),
      onOpen: (pending) => delivery.expect(pending),
      onMissingImage: (pending, row) => delivery.reject(pending, row, 'it has no image'),
    });
    this.#feeder = feeder;
    signal?.addEventListener('abort', this.#onAbort);
  }

  /** The next batch; null after the last. Whatever ended the workers, the reading or the decoding is thrown. */
  async next(): Promise<Batch | null> {
    const { engine, statistics, signal, release } = this.#options;
    const askedAt = statistics.asked();
    if (release === 'auto') this.#current?.release();
    signal?.throwIfAborted();
    if (this.#feeder.isStarved) {
      throw new OptionError(
        {},
        `All ${engine.plan.slots} batch slots are held: call release() on batches that are used up, or raise prefetchBatches.`,
      );
    }
    engine.ref();
    try {
      const pending = await this.#feeder.next();
      if (pending === null) return null;
      await this.#delivery.whenComplete(pending, this.#feeder);
      statistics.delivered(pending.rows, askedAt, pending.issuedAt);
      this.#current = this.#hand(pending);
      this.#options.onDelivered(pending);
      return this.#current;
    } finally {
      engine.unref();
    }
  }

  /** Ends feeding and reading. Jobs that were given out may still be under way. */
  async end(): Promise<void> {
    this.#over = true;
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    await this.#feeder.close();
  }

  /** Encoded images lie in the read buffers until the batch is released; decoded ones need them no more. */
  #hand(pending: PendingBatch): Batch {
    const keepsBytes = this.#options.output.kind === 'raw';
    const batch = this.#delivery.batch(pending, () => {
      if (this.#over) return;
      if (keepsBytes) this.#feeder.retire(pending);
      this.#feeder.freeSlot(pending.slot);
    });
    if (!keepsBytes) this.#feeder.retire(pending);
    return batch;
  }
}
