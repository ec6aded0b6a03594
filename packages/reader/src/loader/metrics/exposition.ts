/**
 * Metrics in Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/), with names that
 * follow its conventions: base units, and `_total` for counters.
 */
import type { LoaderTotals } from './totals.js';

/** Content type of {@link exposition}. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** The totals of a loader, and the labels that distinguish it. */
export interface LabelledTotals {
  readonly labels: Readonly<Record<string, string>>;
  readonly totals: LoaderTotals;
  /** When counting began, in milliseconds since 1970. */
  readonly since: number;
}

interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  /** A value, or values by cause. */
  value(totals: LoaderTotals): number | Readonly<Record<string, number>>;
}

const seconds = (ms: number): number => ms / 1000;

/** All metrics. Prometheus' text and OTLP have the same names. */
export const METRICS: readonly Metric[] = [
  {
    name: 'shardtool_loader_wait_seconds_total',
    type: 'counter',
    help: 'Time that the consumer waited for batches, by cause.',
    value: ({ waitMsBy }) => Object.fromEntries(Object.entries(waitMsBy).map(([cause, ms]) => [cause, seconds(ms)])),
  },
  {
    name: 'shardtool_loader_consumer_seconds_total',
    type: 'counter',
    help: 'Time that the consumer worked on batches.',
    value: ({ consumerMs }) => seconds(consumerMs),
  },
  {
    name: 'shardtool_loader_waiting_seconds',
    type: 'gauge',
    help: 'Time that the consumer has been waiting for the next batch; 0 if it does not wait.',
    value: ({ waitingMs }) => seconds(waitingMs),
  },
  {
    name: 'shardtool_loader_batches_total',
    type: 'counter',
    help: 'Batches that were delivered.',
    value: ({ batches }) => batches,
  },
  {
    name: 'shardtool_loader_samples_total',
    type: 'counter',
    help: 'Rows of the batches that were delivered.',
    value: ({ samples }) => samples,
  },
  {
    name: 'shardtool_loader_bad_samples_total',
    type: 'counter',
    help: 'Samples that could not be used.',
    value: ({ bad }) => bad,
  },
  {
    name: 'shardtool_loader_dropped_samples_total',
    type: 'counter',
    help: 'Samples that custom steps dropped.',
    value: ({ dropped }) => dropped,
  },
  {
    name: 'shardtool_loader_epoch',
    type: 'gauge',
    help: 'Epoch of the last batch; -1 before the first batch.',
    value: ({ epoch }) => epoch,
  },
  {
    name: 'shardtool_loader_ready_batches',
    type: 'gauge',
    help: 'Batches that are ready and were not requested yet.',
    value: ({ readyBatches }) => readyBatches,
  },
  {
    name: 'shardtool_storage_requests_total',
    type: 'counter',
    help: 'Requests to remote storage.',
    value: ({ requests }) => requests,
  },
  {
    name: 'shardtool_storage_fetched_bytes_total',
    type: 'counter',
    help: 'Bytes received from remote storage, including those of failed requests.',
    value: ({ fetchedBytes }) => fetchedBytes,
  },
  {
    name: 'shardtool_storage_retries_total',
    type: 'counter',
    help: 'Requests to remote storage that were repeated.',
    value: ({ retries }) => retries,
  },
  {
    name: 'shardtool_cache_hits_total',
    type: 'counter',
    help: 'Reads that were served from the cache.',
    value: ({ cacheHits }) => cacheHits,
  },
  {
    name: 'shardtool_cache_hit_bytes_total',
    type: 'counter',
    help: 'Bytes of the reads that were served from the cache.',
    value: ({ cacheHitBytes }) => cacheHitBytes,
  },
];

/** The metrics of these loaders, as text. */
export function exposition(loaders: readonly LabelledTotals[]): string {
  const lines: string[] = [];
  for (const { name, type, help, value } of METRICS) {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    for (const { labels, totals } of loaders) {
      const values = value(totals);
      if (typeof values === 'number') lines.push(`${name}${labelText(labels)} ${values}`);
      else {
        for (const [cause, one] of Object.entries(values))
          lines.push(`${name}${labelText({ ...labels, cause })} ${one}`);
      }
    }
  }
  return `${lines.join('\n')}\n`;
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const texts = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`,
  );
  return `{${texts.join(',')}}`;
}
