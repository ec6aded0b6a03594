import { countOf, OptionError, optionName, ShardtoolError, sentence } from '@shardtool/base';
import { shownLocation } from '@shardtool/storage';
import { formatOf, isRgb } from '../codec/pixel-format.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { TransformInput } from '../transform/transform.js';
import type { Batch, BatchContent } from './deliver/batch/batch.js';
import type { FedEpoch } from './deliver/feed/feeder.js';
import { Iteration } from './deliver/iteration.js';
import type { LoaderReport } from './deliver/statistics.js';
import type { WaitLog, WaitTimes } from './deliver/waits.js';
import { LoaderCounts } from './loader-counts.js';
import { type LoaderInfo, loaderInfo } from './loader-info.js';
import type { LoaderState } from './loader-state.js';
import { Loop } from './loop.js';
import { MetricsService } from './metrics/metrics-service.js';
import type { LoaderTotals } from './metrics/totals.js';
import { type CheckedOptions, checkOptions, type LoaderOptions } from './options.js';
import { type Place, Progress } from './progress.js';
import { leastBytes } from './read/least-bytes.js';
import { ReadHistory } from './read/readers/read-history.js';
import { FreeSlots } from './ring/free-slots.js';
import { type Running, startRunning } from './running.js';
import { checkScheduled, type ScheduledTransform, TransformSchedule } from './setup/transform-schedule.js';
import { type LoaderSetup, setUp, setUpSchedule } from './setup.js';
import { startWorkers, type Workers } from './work/start-workers.js';

/** A loader was closed while it was being iterated. */
export class LoaderClosedError extends ShardtoolError {
  static override readonly kind: string = 'LoaderClosedError';
}

/** {@link Running}, or its promise while it starts. */
interface Starting {
  readonly running: Promise<Running>;
  /** Aborts when the workers are no longer needed. Workers that are still starting then end. */
  readonly giveUp: AbortController;
}

/** Number of loaders that this process has made. */
let loaders = 0;

/**
 * Shuffled, decoded batches of a dataset. An iteration goes through one epoch (or `epochsPerLoop` of them), and the
 * next iteration continues with the next epoch. The type of `batch.images` follows from the options. Workers and memory
 * are kept from the first batch until {@link close}, or until an iteration ends early.
 */
export class Loader<Content extends BatchContent = BatchContent>
  implements AsyncIterable<Batch<Content>>, AsyncDisposable
{
  readonly #dataset: StoredDataset;
  readonly #options: CheckedOptions;
  /** Distinguishes the loaders of a process. */
  readonly #name = String(loaders++);
  readonly #since = Date.now();
  readonly #context: Parameters<typeof startRunning>[1];
  #settingUp: Promise<LoaderSetup> | null = null;
  #setup: LoaderSetup | null = null;
  #starting: Starting | null = null;
  #running: Running | null = null;
  #loop: Loop | null = null;
  /** Workers that wait for the first iteration. */
  #workers: Workers | null;
  readonly #progress: Progress;
  readonly #history: ReadHistory;
  /** The transform of each epoch. */
  readonly #schedule: TransformSchedule;
  #given: readonly ScheduledTransform[] = [];
  #iteration: Iteration | null = null;
  readonly #service = new MetricsService();
  readonly #counts: LoaderCounts;

  /**
   * Throws {@link OptionError} for options that are not allowed. `progress` belongs to a consumer that takes batches
   * ahead and reports when they are delivered. `slotFileSlots` are the slots of an earlier loader with the same slot
   * file. `workers` have been started for the first iteration.
   */
  constructor(
    dataset: StoredDataset,
    options: LoaderOptions,
    progress: Progress = new Progress(),
    slotFileSlots: FreeSlots = new FreeSlots(),
    workers: Workers | null = null,
  ) {
    this.#dataset = dataset;
    this.#options = checkOptions(options);
    this.#schedule = TransformSchedule.of(this.#options);
    this.#progress = progress;
    this.#workers = workers;
    this.#counts = new LoaderCounts(dataset, () => this.#setup?.cached ?? null);
    this.#history = new ReadHistory(dataset.sampleBytes, dataset.files.samples);
    this.#context = { dataset, options: this.#options, history: this.#history, slotFileSlots };
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Batch<Content>, undefined> {
    if (this.#loop !== null) {
      throw new OptionError(
        {},
        'A loop over this loader is already running: end that loop first, or create a second loader.',
      );
    }
    const startedAt = performance.now();
    const loop = new Loop(this.#options.signal);
    this.#loop = loop;
    let isWhole = false;
    let workers = null as Workers | null;
    try {
      const setup = await loop.orStopped(() => {
        // Starting a thread takes longer than the setup, so both run at the same time.
        if (this.#starting === null) workers = this.#takeWorkers() ?? startWorkers(this.#options.workers);
        return this.#prepare();
      });
      await this.#service.start(this.#options.metrics, process.env, () => ({
        labels: { rank: String(setup.order.rank), loader: this.#name },
        totals: this.totals(),
        since: this.#since,
      }));
      const { engine, output } = this.#running ?? {};
      if (engine !== undefined && (engine.failure !== undefined || output !== setup.output))
        await stopEngine(this.#letGo());
      const place = this.#progress.startLoop();
      if (place !== null) {
        const running = await loop.orStopped(() => {
          const own = workers;
          workers = null;
          return this.#start(setup, own);
        });
        // The types of the batches follow from the same options.
        const batches = loop.batches(() => this.#begin(setup, running, place, startedAt));
        yield* batches as AsyncGenerator<Batch<Content>, undefined>;
      }
      isWhole = true;
    } finally {
      await loop.end();
      await workers?.close();
      this.#counts.statistics.ended();
      // If the loader was closed in the meantime, a later loop may have started.
      if (this.#loop === loop) {
        this.#loop = null;
        if (!isWhole) await this.close();
      }
    }
  }

  /**
   * The next iteration goes through this epoch, from its start or from the position of a state in it. If the state was
   * taken after the last batch of the epoch, the iteration is empty. With `transform`, this epoch and those after it
   * use another transform. If the loader has not used the transform before, it starts new decode workers. To avoid
   * that, use the option `schedule`.
   */
  setEpoch(epoch: number, { transform }: { readonly transform?: TransformInput | undefined } = {}): void {
    if (!Number.isInteger(epoch) || epoch < 0 || epoch > 0xffffffff) {
      throw new OptionError({}, `Invalid epoch ${epoch}: it must be a whole number of 0 or more.`);
    }
    if (transform !== undefined) {
      const earlier = this.#given.filter((entry) => entry.epoch < epoch);
      this.useTransforms([...earlier, { epoch, transform }]);
    }
    this.#progress.setEpoch(epoch);
  }

  /** Sets the transforms of later epochs, in ascending order of epochs. They apply from the next iteration on. */
  useTransforms(given: readonly ScheduledTransform[]): void {
    if (given.length === 0 && this.#given.length === 0) return;
    const { schedule, views } = this.#options;
    if (schedule !== undefined || views !== undefined) {
      const option = views === undefined ? 'schedule' : 'views';
      throw new OptionError(
        {},
        sentence`The option ${optionName(option)} sets the transform of every epoch: remove ${optionName(option)}, or set no transform for single epochs.`,
      );
    }
    for (const { epoch, transform } of given)
      checkScheduled(transform, `the transform of epoch ${epoch}`, formatOf(this.#options));
    this.#given = given;
  }

  /**
   * Returns the position of the run after the last delivered batch: plain data of about 300 bytes for the option
   * `state`. If {@link setEpoch} has set another epoch since, it is the start of that epoch. It is the same on all
   * ranks. Throws {@link OptionError} before the first batch.
   */
  state(): LoaderState {
    return this.#stateAt(this.#progress.now);
  }

  /**
   * Returns a state of this mixture in which the datasets have other weights from that position on. The position in
   * each dataset stays exact. Throws {@link OptionError} if this is not a mixture or the weights do not fit, and
   * StateError for a state of another mixture.
   */
  async withWeights(state: unknown, weights: readonly number[]): Promise<LoaderState> {
    const { order, output } = await this.#prepare();
    if (order.withWeights !== undefined) return { ...order.withWeights(state, weights), ...decodingOf(output) };
    throw new OptionError({}, 'This loader has a single dataset, so there are no weights to change: open a mixture.');
  }

  /** Like {@link state}, after the batch that was taken last, which may not have reached the consumer yet. */
  takenState(): LoaderState {
    return this.#stateAt(this.#progress.taken);
  }

  /** The memory of the batch slots, for code that page-locks it. Null while there are no workers. */
  get slotMemory(): Uint8Array | null {
    return this.#running?.engine.slotMemory ?? null;
  }

  /** Describes the next iteration. */
  async info(): Promise<LoaderInfo> {
    const setup = await this.#prepare();
    const shard = this.#dataset.files.samples.findIndex((samples) => samples > 0);
    const hasCropIndex = shard >= 0 && (await setup.store.crops.columns(shard)) !== null;
    const { statistics, measured } = this.#counts;
    return loaderInfo(setup, this.#progress.next!, { hasCropIndex, ...statistics.counts, ...measured });
  }

  /** Reports where the time of the iteration was spent, and what went wrong. */
  report(): LoaderReport {
    return this.#counts.report();
  }

  /**
   * Totals since the loader was made, and the waits of the last minute, as a flat object of numbers for W&B and TensorBoard. Each
   * name begins with `prefix`. Times are in seconds. docs/metrics.md describes the names.
   */
  metrics({ prefix = 'shardtool/' }: { readonly prefix?: string } = {}): Record<string, number> {
    return this.#counts.metrics(this.#ready, prefix);
  }

  /** The values from which {@link metrics} and the metrics for Prometheus are computed. */
  totals(): LoaderTotals {
    return this.#counts.totals(this.#ready);
  }

  /**
   * Announces that other code takes batches ahead for a consumer, whose waits are in `log`. Returns a function with the
   * waits of that code so far.
   */
  reportConsumer(log: WaitLog): () => WaitTimes {
    return this.#counts.reportConsumer(log);
  }

  /** URL at which Prometheus can read the metrics of this process, while they are served. Null if they are not. */
  get metricsUrl(): string | null {
    return this.#service.url;
  }

  /**
   * Ends the workers and frees the memory. Batches that are held stay valid. A running loop ends with a {@link
   * LoaderClosedError}. The loader may be iterated again.
   */
  async close(): Promise<void> {
    const loop = this.#loop;
    // From now on, the next loop starts new workers.
    const starting = this.#letGo();
    this.#loop = null;
    loop?.stop(closedError());
    await loop?.end();
    await stopEngine(starting);
    await this.#takeWorkers()?.close();
    await this.#setup?.cached?.settle();
    await this.#service.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #prepare(): Promise<LoaderSetup> {
    this.#settingUp ??= setUp(this.#dataset, this.#options, this.#schedule);
    let setup = await this.#settingUp.catch((error: unknown) => {
      // Data that could not be read now may be readable the next time.
      this.#settingUp = null;
      throw error;
    });
    const schedule = this.#given.reduce((now, { epoch, transform }) => now.with(epoch, transform), this.#schedule);
    if (!schedule.isLike(setup.schedule)) {
      setup = await setUpSchedule(this.#dataset, this.#options, setup, schedule);
      this.#settingUp = Promise.resolve(setup);
    }
    this.#setup = setup;
    this.#progress.begin(setup.order.begin, setup.order.isOver);
    return setup;
  }

  #stateAt(place: Place | null): LoaderState {
    if (this.#setup !== null && place !== null) {
      const { order, output, schedule } = this.#setup;
      const state = { ...order.stateAt(place), ...decodingOf(output) };
      return schedule.isAlways(this.#options.transform) ? state : { ...state, transform: schedule.at(place.epoch) };
    }
    throw new OptionError({}, 'There is no state before the first batch: request a batch first, or await info().');
  }

  #start(setup: LoaderSetup, workers: Workers | null): Promise<Running> {
    if (this.#starting === null) {
      const giveUp = new AbortController();
      const own = workers ?? startWorkers(this.#options.workers);
      const starting = { giveUp, running: startRunning(setup, this.#context, own, giveUp.signal) };
      this.#starting = starting;
      starting.running.then(
        (running) => {
          // The engine of a stopped loop may start later than the engine of the next loop.
          if (this.#starting === starting) this.#running = running;
        },
        () => {},
      );
    }
    return this.#starting.running;
  }

  #takeWorkers(): Workers | null {
    const workers = this.#workers;
    this.#workers = null;
    return workers;
  }

  /** Detaches the engine from this loader. */
  #letGo(): Starting | null {
    const starting = this.#starting;
    this.#counts.endEngine();
    this.#running = null;
    this.#starting = null;
    return starting;
  }

  #begin(
    { order, output, store, cuts, schedule }: LoaderSetup,
    { engine, readers }: Running,
    from: Place,
    startedAt: number,
  ): Iteration {
    this.#counts.beginLoop(engine, performance.now() - startedAt);
    const { onBad, reuse, epochsPerLoop } = this.#options;
    const { shards } = this.#dataset;
    const end = from.epoch + epochsPerLoop;
    let next = from;
    this.#iteration = new Iteration({
      engine,
      output,
      statistics: this.#counts.statistics,
      onBad,
      isRepeated: order.repeats > 1,
      reuse,
      origin: order.origin,
      cuts,
      readsAllFirst: order.unit === 'sample',
      shardAt: (shard) => ({ name: shards[shard]!.name, path: shownLocation(shards[shard]!.path) }),
      nextEpoch: async (demand): Promise<FedEpoch | null> => {
        const place = next;
        const { epoch, position } = place;
        if (epoch > from.epoch) this.#history.end();
        if (epoch >= end) return null;
        const plan = order.plan(place);
        if (plan.isEmpty) throw noBatches(epoch, plan.samples - position, order.globalBatch);
        const least = (): Promise<number> => leastBytes(order.upcoming(place), order.samplesOf, store);
        const reading = await readers.begin(plan, order.readsAll(place), demand, least);
        next = { epoch: epoch + 1, position: 0 };
        return { epoch, plan, ...reading, transform: schedule.indexAt(epoch) };
      },
      onDelivered: (pending) => {
        pending.noteChecked();
        const { epoch, planned } = pending;
        const { position, bucket } = planned;
        this.#progress.take({ epoch, position, ...(bucket && { buckets: bucket.place }) });
      },
    });
    return this.#iteration;
  }

  /** Number of batches that are ready, but were not requested yet. */
  get #ready(): number {
    return this.#loop === null ? 0 : (this.#iteration?.ready ?? 0);
  }
}

/** The part of a state that the pixels depend on. */
function decodingOf({
  decode,
  codec,
  format,
}: LoaderSetup['output']): Pick<LoaderState, 'decode' | 'codec' | 'pixels'> {
  const isDefault = isRgb(format) && format.background === null;
  return { decode, codec: codec?.name ?? null, ...(!isDefault && { pixels: format }) };
}

async function stopEngine(starting: Starting | null): Promise<void> {
  starting?.giveUp.abort(closedError());
  const running = await starting?.running.catch(() => null);
  await running?.engine.close();
}

export function closedError(): LoaderClosedError {
  return new LoaderClosedError({}, 'The loader was closed while it was being iterated: end the loop first.');
}

/** Returns the error for an epoch without batches: a loop over it would do nothing, or never end. */
function noBatches(epoch: number, samples: number, globalBatch: number): OptionError {
  return new OptionError(
    {},
    sentence`Epoch ${epoch} has ${countOf(samples, 'sample')}, too few for a batch of ${globalBatch}: choose a smaller batch, or ${optionName('lastBatch')} 'pad' or 'partial'.`,
  );
}
