import { OptionError } from '@shardtool/format';
import type { CodecChoice } from '../codec/select.js';
import type { Dataset } from '../dataset/dataset.js';
import type { LoaderState } from '../order/state.js';
import type { Batch } from './batch.js';
import { Engine } from './engine.js';
import { EpochReaders } from './epoch-readers.js';
import type { FedEpoch } from './feeder.js';
import { Iteration } from './iteration.js';
import { type CheckedOptions, checkOptions, type LoaderOptions } from './options.js';
import { type LoaderSetup, setUp } from './setup.js';
import { type LoaderReport, Statistics } from './statistics.js';

/** What a loader is going to do, and with what. Memory in bytes. */
export interface LoaderInfo {
  /** Samples of the next epoch over all ranks, and this rank's batches in it. */
  readonly samples: number;
  readonly batches: number;
  readonly batchSize: number;
  readonly globalBatchSize: number;
  readonly rank: number;
  readonly worldSize: number;
  readonly workers: number;
  readonly streams: number;
  readonly blockSamples: number;
  readonly shuffleUnit: 'sample' | 'shard' | 'chunk';
  /** How JPEGs are decoded and why; null where images stay encoded. */
  readonly codec: CodecChoice | null;
  /** Batch slots. */
  readonly slotBytes: number;
  /** Encoded samples: as much as is expected, and the limit. */
  readonly readBufferBytes: number;
  readonly readBufferLimitBytes: number;
}

/** A position in the epochs: samples delivered over all ranks. */
interface Place {
  readonly epoch: number;
  readonly position: number;
}

/** What lives from iteration to iteration. */
interface Running {
  readonly engine: Engine;
  readonly readers: EpochReaders;
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
  #running: Running | null = null;
  #isIterating = false;
  /** Where the next iteration begins; null until the setup has said. */
  #next: Place | null = null;
  /** After the last delivered batch. */
  #delivered: Place | null = null;
  #hasRead = false;
  #statistics = new Statistics();
  #warningsBefore = 0;

  /** Throws {@link OptionError} for options that are not allowed. */
  constructor(dataset: Dataset, options: LoaderOptions) {
    this.#dataset = dataset;
    this.#options = checkOptions(options);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Batch, undefined> {
    if (this.#isIterating) {
      throw new OptionError({}, 'This loader is being iterated already: end that loop first, or make a second loader.');
    }
    this.#isIterating = true;
    let isWhole = false;
    try {
      this.#options.signal?.throwIfAborted();
      const setup = await this.#prepare();
      const iteration = this.#begin(setup, await this.#run(setup));
      try {
        for (let batch = await iteration.next(); batch !== null; batch = await iteration.next()) yield batch;
        isWhole = true;
      } finally {
        await iteration.end();
      }
    } finally {
      this.#isIterating = false;
      if (!isWhole) await this.close();
    }
  }

  /** The next iteration begins with this epoch: at its start, or where a state was taken in it. */
  setEpoch(epoch: number): void {
    if (!Number.isInteger(epoch) || epoch < 0 || epoch > 0xffffffff) {
      throw new OptionError({}, `The epoch ${epoch} is not right: it is a whole number from 0 on.`);
    }
    if (this.#next?.epoch !== epoch) this.#next = { epoch, position: 0 };
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

  /** What the next iteration is going to do. */
  async info(): Promise<LoaderInfo> {
    const setup = await this.#prepare();
    const { epoch, position } = this.#next!;
    const plan = setup.plan(epoch, position);
    return {
      samples: plan.samples,
      batches: plan.batches,
      batchSize: setup.batchSize,
      globalBatchSize: setup.globalBatch,
      rank: setup.rank,
      worldSize: setup.worldSize,
      workers: setup.memory.workers,
      streams: setup.streams,
      blockSamples: setup.blockSamples,
      shuffleUnit: plan.unit,
      codec: setup.codec,
      slotBytes: setup.memory.slots * setup.memory.slotBytes,
      readBufferBytes: setup.readBuffers.expectedBytes,
      readBufferLimitBytes: setup.readBuffers.limitBytes,
    };
  }

  /** Where the time of the iteration went, and what went wrong in it. */
  report(): LoaderReport {
    const engine = this.#running?.engine;
    const warnings = engine === undefined ? 0 : engine.control.warnings - this.#warningsBefore;
    return this.#statistics.report(warnings, engine?.arena.peak ?? 0);
  }

  /** Ends the workers and gives the memory back. The loader may be iterated again. */
  async close(): Promise<void> {
    const running = this.#running;
    this.#running = null;
    await running?.engine.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #prepare(): Promise<LoaderSetup> {
    this.#settingUp ??= setUp(this.#dataset, this.#options);
    const setup = await this.#settingUp;
    this.#setup = setup;
    this.#next ??= setup.begin;
    return setup;
  }

  async #run(setup: LoaderSetup): Promise<Running> {
    if (this.#running !== null && this.#running.engine.failure === undefined) return this.#running;
    const engine = await Engine.start(setup.engine);
    const { slabs } = setup.readBuffers;
    const { readConcurrency } = this.#options;
    const readers = new EpochReaders(engine.arena, { files: this.#dataset.files, slabs, readConcurrency });
    this.#running = { engine, readers };
    return this.#running;
  }

  #begin(setup: LoaderSetup, { engine, readers }: Running): Iteration {
    this.#statistics = new Statistics();
    this.#warningsBefore = engine.control.warnings;
    const begin = this.#next!;
    let { epoch, position } = begin;
    const end = epoch + this.#options.repeat;
    return new Iteration({
      engine,
      statistics: this.#statistics,
      image: this.#options.image,
      fields: setup.fields,
      output: setup.output,
      onBadSample: this.#options.onBadSample,
      release: this.#options.release,
      firstSample: this.#dataset.files.firstSample,
      signal: this.#options.signal,
      shardName: (shard) => this.#dataset.shards[shard]!.name,
      nextEpoch: async (mayFree): Promise<FedEpoch | null> => {
        if (epoch >= end) {
          this.#next = { epoch, position: 0 };
          return null;
        }
        const plan = setup.plan(epoch, position);
        const reader = await readers.reader(plan, setup.selection(epoch), mayFree);
        const fed = { epoch, plan, reader, checksum: this.#checksum() };
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

  /** Whether the images of the epoch that begins now are checked. */
  #checksum(): boolean {
    const { checksum } = this.#options;
    const isFirst = !this.#hasRead;
    this.#hasRead = true;
    return checksum === 'always' || (checksum === 'first-epoch' && isFirst);
  }
}
