import type { CutShards } from '../../dataset/shards/cut-shards.js';
import type { CheckedOptions } from '../options.js';
import type { Demand } from '../read/readers/block-reader.js';
import type { SampleOrigin } from '../setup/order/order-sources.js';
import type { LoaderOutput } from '../setup/output.js';
import type { Engine } from '../work/engine.js';
import type { Batch } from './batch/batch.js';
import { type FinishedBatchOptions, finishedBatch } from './batch/finished-batch.js';
import { Delivery } from './delivery.js';
import { type FedEpoch, Feeder } from './feed/feeder.js';
import { RowJobs } from './feed/row-jobs.js';
import { warnNarrowed } from './narrowed.js';
import type { PendingBatch } from './pending-batch.js';
import type { BadRowOptions, ShardAt } from './rows/bad-rows.js';
import { TextChoice } from './rows/text-choice.js';
import type { Statistics } from './statistics.js';
import { warnUnlabelled } from './unlabelled.js';

export interface IterationOptions {
  readonly engine: Engine;
  readonly output: LoaderOutput;
  readonly statistics: Statistics;
  readonly onBad: BadRowOptions['onBad'];
  readonly isRepeated: boolean;
  readonly reuse: CheckedOptions['reuse'];
  readonly origin: SampleOrigin;
  readonly cuts: CutShards;
  readonly shardAt: ShardAt;
  /** All samples are read before the first epoch. */
  readonly readsAllFirst: boolean;
  /** The next epoch to feed, or null after the last. */
  nextEpoch(demand: Demand): Promise<FedEpoch | null>;
  onDelivered(pending: PendingBatch): void;
}

/** One iteration over the epochs: batches are prepared ahead and delivered one by one. */
export class Iteration {
  readonly #options: IterationOptions;
  readonly #delivery: Delivery;
  readonly #feeder: Feeder;
  readonly #finish: FinishedBatchOptions;
  #current: Batch | null = null;

  constructor(options: IterationOptions) {
    const { engine, output, statistics, onBad, isRepeated, reuse, origin, shardAt } = options;
    const { whole, mixes, image, extraFields, annotations, fields } = output;
    this.#options = options;
    const jobs = new RowJobs({
      control: engine.control,
      image,
      hasImages: output.batch.kind !== 'fields',
      extraFields,
      ragged: output.batch.kind === 'pixels' ? output.batch.ragged : null,
      parts: engine.parts,
      texts: engine.texts,
      facts: engine.facts,
      whole,
      origin,
      cuts: options.cuts,
    });
    const delivery = new Delivery({
      engine,
      jobs,
      whole,
      labels: output.labels,
      captionSampling: output.drawsTexts ? new TextChoice(origin.seeds) : null,
      badRows: { engine, statistics, shardAt, onBad, isRepeated, output: output.batch, extraFields },
    });
    this.#delivery = delivery;
    this.#finish = {
      engine,
      image,
      output: output.batch,
      extraFields,
      annotations,
      whole,
      copies: reuse === false,
      mixes,
      labels: output.labels,
      isMixture: origin.sourceOfShard !== null,
      seeds: origin.seeds,
    };
    this.#feeder = new Feeder({
      control: engine.control,
      wakeSignal: engine.wakeSignal,
      slots: engine.plan.slots,
      freeSlots: engine.freeSlots,
      jobs,
      texts: engine.texts,
      isRagged: output.batch.kind === 'pixels' && output.batch.ragged !== null,
      whole,
      fields,
      bytesAreHeld: output.batch.kind === 'raw' && reuse === 'manual',
      readsAllFirst: options.readsAllFirst,
      nextEpoch: (demand) => options.nextEpoch(demand),
      failure: () => engine.failure,
      onOpen: (pending) => delivery.expect(pending),
    });
  }

  /** The next batch; null after the last. Throws the error that ended the workers, the reading or the decoding. */
  async next(): Promise<Batch | null> {
    const { engine, statistics, reuse } = this.#options;
    const asked = statistics.asked(this.#feeder.blocked.now());
    if (reuse === true) this.#current?.release();
    engine.ref();
    try {
      const pending = await this.#feeder.next();
      if (pending === null) return null;
      await this.#delivery.whenComplete(pending, this.#feeder);
      this.#current = this.#hand(pending);
      statistics.delivered(pending, asked, engine.control.takeWork());
      this.#options.onDelivered(pending);
      return this.#current;
    } finally {
      engine.unref();
    }
  }

  /** Number of batches that are ready, but were not requested yet. */
  get ready(): number {
    return this.#feeder.ready;
  }

  /** Ends the iteration. Pending and later requests for a batch reject with the reason at once. */
  stop(reason: unknown): void {
    this.#feeder.stop(reason);
  }

  /** Ends feeding and reading. Jobs that were already assigned may still be running. */
  async end(): Promise<void> {
    if (this.#options.reuse === true) this.#current?.release();
    await this.#feeder.close();
  }

  /**
   * Delivers the batch. It refers to its slot until it is released, and to the read buffers if its images are encoded.
   */
  #hand(pending: PendingBatch): Batch {
    const { engine, output, statistics, reuse } = this.#options;
    const showsBytes = output.batch.kind === 'raw';
    this.#delivery.forget(pending);
    const held = engine.freeSlots.hold(pending.slot);
    const batch = finishedBatch(pending, this.#finish, () => {
      if (showsBytes) this.#feeder.retire(pending);
      engine.freeSlots.free(held);
    });
    // The statistics object exists as long as the loader, so there is one warning per loader.
    if (this.#finish.labels === null && output.batch.kind !== 'fields') warnUnlabelled(batch, statistics);
    if (engine.control.narrowed > 0) warnNarrowed(engine.control);
    if (!showsBytes) this.#feeder.retire(pending);
    if (reuse === false) batch.release();
    return batch;
  }
}
