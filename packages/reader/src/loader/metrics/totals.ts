import { sumOf, type WaitReport, type WaitTimes } from '../deliver/waits.js';

/** Counts of a loader since it was created. Counts never decrease, except `epoch`, `readyBatches` and `waitingMs`. */
export interface LoaderTotals {
  readonly batches: number;
  readonly samples: number;
  readonly waitMsBy: WaitTimes;
  readonly consumerMs: number;
  readonly bad: number;
  readonly dropped: number;
  /** Counts of storage; 0 if all data is on this machine. */
  readonly requests: number;
  readonly fetchedBytes: number;
  readonly retries: number;
  readonly cacheHits: number;
  readonly cacheHitBytes: number;
  /** Epoch of the last batch. -1 before the first batch. */
  readonly epoch: number;
  /** Number of batches that are ready, but were not requested yet. */
  readonly readyBatches: number;
  /** Time for which the consumer has been waiting for the batch that it requested last; 0 if that batch has arrived. */
  readonly waitingMs: number;
}

/**
 * The totals, and the waits of the last minute, as a flat object of numbers for W&B and TensorBoard. Times are in seconds.
 * Each name begins with `prefix`.
 */
export function flatMetrics(totals: LoaderTotals, window: WaitReport, prefix: string): Record<string, number> {
  const all = window.waitMs + window.consumerMs;
  const metrics: Record<string, number> = {
    epoch: totals.epoch,
    batches: totals.batches,
    samples: totals.samples,
    wait_seconds: sumOf(totals.waitMsBy) / 1000,
    consumer_seconds: totals.consumerMs / 1000,
    bad_samples: totals.bad,
    dropped_samples: totals.dropped,
    ready_batches: totals.readyBatches,
    storage_requests: totals.requests,
    storage_fetched_bytes: totals.fetchedBytes,
    storage_retries: totals.retries,
    cache_hits: totals.cacheHits,
    cache_hit_bytes: totals.cacheHitBytes,
    samples_per_second: all === 0 ? 0 : (window.samples / all) * 1000,
    wait_share: window.waitShare,
  };
  for (const [cause, ms] of Object.entries(window.waitMsBy)) {
    metrics[`wait_share_${cause}`] = all === 0 ? 0 : ms / all;
  }
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [prefix + name, value]));
}
