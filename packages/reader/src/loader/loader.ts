import { OptionError, ShardtoolError } from '@shardtool/format';
import type { Dataset } from '../dataset/dataset.js';
import type { LoaderState } from '../order/state.js';
import { type DrawnMix, drawMix } from '../transform/mix.js';
import { FIRST_NUMBER, SampleRandom } from '../transform/random.js';
import type { Batch } from './deliver/batch.js';
import type { FedEpoch } from './deliver/feeder.js';
import { Iteration } from './deliver/iteration.js';
import type { PendingBatch } from './deliver/pending-batch.js';
import { type LoaderReport, Statistics } from './deliver/statistics.js';
import { type LoaderInfo, loaderInfo } from './loader-info.js';
import { type CheckedOptions, checkOptions, type LoaderOptions } from './options.js';
import { EpochReaders } from './read/epoch-readers.js';
import { leastBytes } from './read/least-bytes.js';
import { storageReadBytes } from './read/storage-reads.js';
import { type LoaderSetup, setUp } from './setup.js';
import { Engine } from './work/engine.js';

/** A loader was closed while it was being iterated. */
export class LoaderClosedError extends ShardtoolError {}

/** A position in the epochs: samples delivered over all ranks. */
interface Place {
  readonly epoch: number;
  readonly position: number;
}

/** So much may come from storage in an epoch that counts as cached: a part of the dataset, and whatever else the process reads. */
const MOST_FROM_STORAGE = 1 / 64;
const OTHER_STORAGE_BYTES = 2 ** 24;

/** What lives from iteration to iteration. */
interface Running {
  readonly engine: Engine;
  readonly readers: EpochReaders;
}

/** One iteration, from its first batch being asked for to its end; `iteration` is null while workers start. */
interface Loop {
  iteration: Iteration | null;
}

/**
 * Shuffled, decoded batches of a dataset. Iterating goes through one epoch (or `repeat` of them); iterating again goes on
 * with the next. Workers and memory live from the first batch until {@link close}, or until an iteration ends early.
 */
export class Loader implements AsyncIterable<Batch>, AsyncDisposable {
  readonly #dataset: Dataset;
  readonly #options: CheckedOptions;
  #settingUp: Promise<LoaderSetup> | null = null;
  #setup: LoaderSetup | null = null;
  #starting: Promise<Running> | null = null;
  #running: Running | null = null;
  #loop: Loop | null = null;
  /** The epoch that {@link setEpoch} named, until the next iteration begins. */
  #askedEpoch: number | null = null;
  /** Where the next iteration begins; null until the setup has said. */
  #next: Place | null = null;
  /** After the last delivered batch. */
  #delivered: Place | null = null;
  /** An epoch was read from its first sample to its last. */
  #hasReadAll = false;
  /** What had been read from storage when the last epoch began, or 0. */
  #storageBefore = 0;
  #statistics = new Statistics();
  #warningsBefore = 0;
  /** Of the engine that was closed last. */
  #measured = { warnings: 0, readBufferPeakBytes: 0 };

  /** Throws {@link OptionError} for options that are not allowed. */
  constructor(dataset: Dataset, options: LoaderOptions) {
    this.#dataset = dataset;
    this.#options = checkOptions(options);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Batch, undefined> {
    if (this.#loop !== null) {
      throw new OptionError({}, 'This loader is being iterated already: end that loop first, or make a second loader.');
    }
    const loop: Loop = { iteration: null };
    this.#loop = loop;
    let isWhole = false;
    try {
      this.#options.signal?.throwIfAborted();
      const setup = await this.#prepare();
      if (this.#running?.engine.failure !== undefined) await this.#stopEngine();
      if (this.#loop !== loop) throw closedError();
      const running = await this.#start(setup);
      if (this.#loop !== loop) throw closedError();
      const iteration = this.#begin(setup, running);
      loop.iteration = iteration;
      try {
        for (let batch = await iteration.next(); batch !== null; batch = await iteration.next()) yield batch;
        isWhole = true;
      } finally {
        await iteration.end();
      }
    } finally {
      // Where the loader was closed meanwhile, a later loop may have begun.
      if (this.#loop === loop) {
        this.#loop = null;
        if (!isWhole) await this.close();
      }
    }
  }

  /** The next iteration begins with this epoch: at its start, or where a state was taken in it. */
  setEpoch(epoch: number): void {
    if (!Number.isInteger(epoch) || epoch < 0 || epoch > 0xffffffff) {
      throw new OptionError({}, `The epoch ${epoch} is not right: it is a whole number from 0 on.`);
    }
    if (this.#next === null) this.#askedEpoch = epoch;
    else if (this.#next.epoch !== epoch) this.#next = { epoch, position: 0 };
  }

  /**
   * Where the run is, after the last batch that was delivered: plain data of about 300 bytes, for the option `state`. The
   * same on all ranks. Throws {@link OptionError} before the first batch.
   */
  state(): LoaderState {
    const place = this.#delivered ?? this.#next;
    if (this.#setup === null || place === null) {
      throw new OptionError({}, 'There is no state before the first batch: ask for one first, or await info().');
    }
    return this.#setup.stateAt(place.epoch, place.position);
  }

  /** The memory of the batch slots, for whoever pins it; null while there are no workers. */
  get slotMemory(): Uint8Array | null {
    return this.#running?.engine.slotMemory ?? null;
  }

  /** What the next iteration is going to do. */
  async info(): Promise<LoaderInfo> {
    const setup = await this.#prepare();
    const { epoch, position } = this.#next!;
    return loaderInfo(setup, epoch, position);
  }

  /** Where the time of the iteration went, and what went wrong in it. */
  report(): LoaderReport {
    const { warnings, readBufferPeakBytes } = this.#measure();
    return this.#statistics.report(warnings, readBufferPeakBytes);
  }

  /**
   * Ends the workers and gives the memory back; batches that are held stay as they are. A loop that is under way ends
   * with a {@link LoaderClosedError}. The loader may be iterated again.
   */
  async close(): Promise<void> {
    const loop = this.#loop;
    this.#loop = null;
    loop?.iteration?.stop(closedError());
    await loop?.iteration?.end();
    await this.#stopEngine();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #prepare(): Promise<LoaderSetup> {
    this.#settingUp ??= setUp(this.#dataset, this.#options);
    const setup = await this.#settingUp;
    this.#setup = setup;
    if (this.#next === null) {
      const asked = this.#askedEpoch ?? setup.begin.epoch;
      this.#next = asked === setup.begin.epoch ? setup.begin : { epoch: asked, position: 0 };
    }
    return setup;
  }

  #start(setup: LoaderSetup): Promise<Running> {
    this.#starting ??= this.#startEngine(setup);
    return this.#starting;
  }

  async #startEngine(setup: LoaderSetup): Promise<Running> {
    const engine = await Engine.start(setup.engine);
    const readers = new EpochReaders({
      files: this.#dataset.files,
      arena: engine.arena,
      bell: engine.bell,
      slabs: setup.readBuffers.slabs,
      readConcurrency: this.#options.readConcurrency,
      all: setup.subset.all,
    });
    this.#running = { engine, readers };
    return this.#running;
  }

  async #stopEngine(): Promise<void> {
    const starting = this.#starting;
    this.#starting = null;
    if (starting === null) return;
    const running = await starting.catch(() => null);
    if (running === null) return;
    if (this.#running === running) {
      this.#measured = this.#measure();
      this.#running = null;
    }
    await running.engine.close();
  }

  #begin(setup: LoaderSetup, { engine, readers }: Running): Iteration {
    this.#statistics = new Statistics();
    this.#warningsBefore = engine.control.warnings;
    let { epoch, position } = this.#next!;
    const end = epoch + this.#options.repeat;
    let hasFedWhole = false;
    return new Iteration({
      engine,
      statistics: this.#statistics,
      image: this.#options.image,
      fields: setup.fields,
      output: setup.output,
      companions: setup.engine.companions,
      whole: setup.mixing.length > 0 || setup.engine.steps.batch !== undefined,
      mixOf: (pending) => mixOf(setup, pending),
      onBadSample: this.#options.onBadSample,
      release: this.#options.release,
      firstSample: this.#dataset.files.firstSample,
      signal: this.#options.signal,
      shardName: (shard) => this.#dataset.shards[shard]!.name,
      nextEpoch: async (demand): Promise<FedEpoch | null> => {
        this.#hasReadAll ||= hasFedWhole;
        if (epoch >= end) return null;
        const begin = { epoch, position };
        const plan = setup.plan(epoch, position);
        if (plan.batches === 0) throw noBatches(epoch, plan.samples - position, setup.globalBatch);
        const checksum = this.#checksum();
        const inShards = this.#wasCached() && !checksum && setup.engine.shardPaths.length > 0;
        const least = (): Promise<number> =>
          leastBytes(setup.upcoming(begin.epoch, begin.position), this.#dataset.files);
        const reader = await readers.reader({ plan, selection: setup.selection(epoch) }, demand, least, inShards);
        const fed = { epoch, plan, reader, checksum };
        hasFedWhole = position === 0;
        epoch++;
        position = 0;
        return fed;
      },
      onDelivered: (pending) => {
        this.#delivered = { epoch: pending.epoch, position: pending.planned.position };
        this.#next = { epoch: pending.epoch + 1, position: 0 };
      },
    });
  }

  /** Whether the epoch that ends now was a whole one and came out of the page cache: the next one will, too. */
  #wasCached(): boolean {
    const before = this.#storageBefore;
    this.#storageBefore = storageReadBytes();
    const most = OTHER_STORAGE_BYTES + this.#dataset.bytes * MOST_FROM_STORAGE;
    return this.#hasReadAll && this.#storageBefore - before <= most;
  }

  /** Whether what the epoch that begins now delivers is checked. */
  #checksum(): boolean {
    const { checksum } = this.#options;
    return checksum === 'always' || (checksum === 'first-epoch' && !this.#hasReadAll);
  }

  #measure(): { warnings: number; readBufferPeakBytes: number } {
    const engine = this.#running?.engine;
    if (engine === undefined) return this.#measured;
    return { warnings: engine.control.warnings - this.#warningsBefore, readBufferPeakBytes: engine.arena.peak };
  }
}

/** As the workers draw it: with the numbers of the batch's first sample. */
function mixOf({ mixing, seed, output }: LoaderSetup, pending: PendingBatch): DrawnMix | null {
  if (mixing.length === 0 || output.kind !== 'pixels') return null;
  const [block] = pending.blocks;
  const occurrence = block!.occurrence[pending.items[0]!]!;
  const random = new SampleRandom(seed).start(block!.pass, pending.numbers[0]!, occurrence, FIRST_NUMBER.mix);
  return drawMix(mixing, output.size, random);
}

function closedError(): LoaderClosedError {
  return new LoaderClosedError({}, 'The loader was closed while it was being iterated: end the loop first.');
}

/** Nothing comes out of such an epoch: a loop over it would do nothing, or never end. */
function noBatches(epoch: number, samples: number, globalBatch: number): OptionError {
  return new OptionError(
    {},
    `Epoch ${epoch} has ${samples} samples, which make no batch of ${globalBatch}: choose a smaller batch, or lastBatch ` +
      "'pad' or 'partial'.",
  );
}
