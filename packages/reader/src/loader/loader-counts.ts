import type { StoredDataset } from '../dataset/stored-dataset.js';
import { type LoaderReport, type Measured, Statistics, type StorageReport } from './deliver/statistics.js';
import { WaitLog, type WaitTimes } from './deliver/waits.js';
import { flatMetrics, type LoaderTotals } from './metrics/totals.js';
import type { CachedBytes } from './read/cached-bytes.js';
import { countedSince, NOTHING_COUNTED, type StorageCounted, storageCounts } from './storage-counts.js';
import type { Engine } from './work/engine.js';

/** What a loader counts: in the current or last loop, for the report, and over all of its loops, for metrics. */
export class LoaderCounts {
  readonly #dataset: StoredDataset;
  /** The cache in front of the shards, once it is known. */
  readonly #cached: () => CachedBytes | null;
  /** Waits of the code that iterates. {@link reportConsumer} replaces them in reports by those of a consumer. */
  readonly #waits = new WaitLog();
  #consumerWaits = this.#waits;
  #statistics = new Statistics(this.#waits);
  /** Counts of the earlier loops. */
  #before = { bad: 0, dropped: 0 };
  /** Counts when the loop began. */
  #storageBefore = NOTHING_COUNTED;
  #engineBefore = { warnings: 0, spliced: 0 };
  #engine: Engine | null = null;
  /** Counts of the engine that ended last. */
  #measured: Measured = { warnings: 0, spliced: 0, readBufferPeakBytes: 0 };

  constructor(dataset: StoredDataset, cached: () => CachedBytes | null) {
    this.#dataset = dataset;
    this.#cached = cached;
  }

  /** Statistics of the current or last loop. */
  get statistics(): Statistics {
    return this.#statistics;
  }

  /** Starts the counts of a loop. `startMs`: the time that it took to start. */
  beginLoop(engine: Engine, startMs: number): void {
    const { bad, dropped } = this.#statistics.counts;
    this.#before = { bad: this.#before.bad + bad, dropped: this.#before.dropped + dropped };
    this.#statistics = new Statistics(this.#waits, startMs);
    this.#storageBefore = this.#storage() ?? NOTHING_COUNTED;
    const { warnings, spliced } = engine.control;
    this.#engineBefore = { warnings, spliced };
    this.#engine = engine;
  }

  /** Keeps the counts of the engine, which ends. */
  endEngine(): void {
    this.#measured = this.measured;
    this.#engine = null;
  }

  /** What the workers and the read buffers have counted in this loop. */
  get measured(): Measured {
    if (this.#engine === null) return this.#measured;
    const { control, arena, held } = this.#engine;
    return {
      warnings: control.warnings - this.#engineBefore.warnings,
      spliced: control.spliced - this.#engineBefore.spliced,
      readBufferPeakBytes: arena.peak + held.peak,
    };
  }

  report(): LoaderReport {
    const wait = this.#consumerWaits.report(performance.now());
    return { ...this.#statistics.report(this.measured), storage: this.#storageSince(), wait };
  }

  /** `readyBatches`: number of batches that are ready, but were not requested yet. */
  totals(readyBatches: number): LoaderTotals {
    const { batches, samples, consumerMs, waits } = this.#consumerWaits.all;
    const { bad, dropped } = this.#statistics.counts;
    const { hedges: _, ...storage } = this.#storage() ?? NOTHING_COUNTED;
    return {
      batches,
      samples,
      waitMsBy: { ...waits },
      consumerMs,
      bad: this.#before.bad + bad,
      dropped: this.#before.dropped + dropped,
      ...storage,
      epoch: this.#consumerWaits.epoch,
      readyBatches,
      waitingMs: this.#statistics.waitingMs,
    };
  }

  /** {@link totals}, and the waits of the last minute, as numbers. Each name begins with `prefix`. */
  metrics(readyBatches: number, prefix: string): Record<string, number> {
    return flatMetrics(this.totals(readyBatches), this.#consumerWaits.report(performance.now()).window, prefix);
  }

  /** Reports the waits of a consumer, and returns a function with those of the code that iterates. */
  reportConsumer(log: WaitLog): () => WaitTimes {
    this.#consumerWaits = log;
    return () => ({ ...this.#waits.all.waits });
  }

  #storage(): StorageCounted | null {
    return storageCounts(this.#dataset.files, this.#cached());
  }

  #storageSince(): StorageReport | null {
    const now = this.#storage();
    if (now === null) return null;
    const counted = countedSince(this.#storageBefore, now);
    const came = counted.fetchedBytes + counted.cacheHitBytes;
    return { ...counted, ...this.#statistics.ofStorage(came, this.#dataset.meanSampleBytes) };
  }
}
