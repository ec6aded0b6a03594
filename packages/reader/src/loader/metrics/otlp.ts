/**
 * Sends the metrics of this process' loaders to a collector, as JSON over HTTP (https://opentelemetry.io/docs/specs/otlp/).
 * A sender lives as long as one of its loaders is open.
 */
import { hostname } from 'node:os';
import { warn } from '@shardtool/base';
import { METRICS } from './exposition.js';
import type { OtlpTarget } from './otlp-target.js';
import type { MetricsSource } from './server.js';

/** `AGGREGATION_TEMPORALITY_CUMULATIVE` of metrics.proto: counts since the loader was made. */
const CUMULATIVE = 2;

/** Characters of an answer that are read. The answer to a request is an object with at most two values. */
const MOST_ANSWER = 65_536;

/** Senders by their target. */
const SENDERS = new Map<string, Sender>();

/** Sends the metrics of a loader from now on. The result sends them a last time, and ends. */
export function sendMetrics(target: OtlpTarget, source: MetricsSource): () => Promise<void> {
  const name = JSON.stringify(target);
  const sender = SENDERS.get(name) ?? new Sender(target);
  SENDERS.set(name, sender);
  sender.sources.add(source);
  return async () => {
    await sender.sendLast();
    if (!sender.sources.delete(source) || sender.sources.size > 0) return;
    sender.end();
    if (SENDERS.get(name) === sender) SENDERS.delete(name);
  };
}

class Sender {
  readonly sources = new Set<MetricsSource>();
  readonly #target: OtlpTarget;
  readonly #timer: NodeJS.Timeout;
  #last: Promise<void> = Promise.resolve();
  #isSending = false;
  #hasFailed = false;
  readonly #ended = new AbortController();

  constructor(target: OtlpTarget) {
    this.#target = target;
    this.#timer = setInterval(() => {
      // A collector that takes longer than the interval gets the next counts later.
      if (!this.#isSending) void this.send();
    }, target.intervalMs);
    // Sending does not keep the program running.
    this.#timer.unref();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#ended.abort(new DOMException('The last loader was closed.', 'TimeoutError'));
  }

  /** Sends the counts of now. Waits no longer than for one request, also if another request is being sent. */
  async sendLast(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#warn(new DOMException('', 'TimeoutError'));
        resolve();
      }, this.#target.timeoutMs);
    });
    await Promise.race([this.send(), late]);
    clearTimeout(timer);
  }

  /** Sends the counts of now. Failures are warned of once: later counts contain these. */
  send(): Promise<void> {
    this.#last = this.#last.then(async () => {
      this.#isSending = true;
      try {
        await post(
          this.#target,
          otlpBody(
            this.#target.resource,
            Array.from(this.sources, (source) => source()),
          ),
          this.#ended.signal,
        );
      } catch (error) {
        this.#warn(error as Error);
      } finally {
        this.#isSending = false;
      }
    });
    return this.#last;
  }

  #warn({ name, message, cause }: Error): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const why = name === 'TimeoutError' ? 'no answer in time' : (cause as Error | undefined)?.message || message;
    // A query may have a secret.
    const where = this.#target.url.split('?')[0];
    warn(
      'SHARDTOOL_METRICS_NOT_SENT',
      `Metrics could not be sent to ${where} (${why}): check OTEL_EXPORTER_OTLP_ENDPOINT and that the collector runs. The loader continues, and sends them again every ${this.#target.intervalMs / 1000} s.`,
    );
  }
}

async function post({ url, headers, timeoutMs }: OtlpTarget, body: string, ended: AbortSignal): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
    // The headers are meant for this address only.
    redirect: 'error',
    signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ended]),
  });
  const answer = await beginOf(response);
  if (!response.ok) throw new Error(`status ${response.status}`);
  const rejected = /"rejectedDataPoints"\s*:\s*"?([1-9]\d*)/.exec(answer);
  if (rejected !== null) throw new Error(`the collector rejected ${rejected[1]} values`);
}

/** The beginning of an answer. A server that sends without end costs no memory. */
async function beginOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length >= MOST_ANSWER) break;
  }
  return text;
}

/** The metrics of loaders as an `ExportMetricsServiceRequest` in JSON. Times are in nanoseconds, as texts. */
export function otlpBody(
  resource: Readonly<Record<string, string>>,
  loaders: readonly ReturnType<MetricsSource>[],
  now = Date.now(),
): string {
  const process_ = { 'host.name': hostname(), 'process.pid': process.pid, ...resource };
  const metrics = METRICS.map(({ name, type, help, value }) => {
    const dataPoints = loaders.flatMap(({ labels, totals, since }) => {
      const values = value(totals);
      const byCause =
        typeof values === 'number'
          ? [[{}, values] as const]
          : Object.entries(values).map(([cause, one]) => [{ cause }, one] as const);
      return byCause.map(([more, one]) => ({
        attributes: attributesOf({ ...labels, ...more }),
        startTimeUnixNano: nanoseconds(since),
        timeUnixNano: nanoseconds(now),
        asDouble: one,
      }));
    });
    const about = { name, description: help, unit: unitOf(name) };
    if (type === 'gauge') return { ...about, gauge: { dataPoints } };
    return { ...about, sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } };
  });
  return JSON.stringify({
    resourceMetrics: [
      { resource: { attributes: attributesOf(process_) }, scopeMetrics: [{ scope: { name: 'shardtool' }, metrics }] },
    ],
  });
}

function attributesOf(values: Readonly<Record<string, string | number>>): unknown[] {
  return Object.entries(values).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
}

function nanoseconds(ms: number): string {
  return `${Math.round(ms)}000000`;
}

/** Unit by UCUM, as the semantic conventions ask. Counts have none: "1" would become the suffix "_ratio" in Prometheus. */
function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name)) return 's';
  return /_bytes_total$/.test(name) ? 'By' : '';
}
