import { type MetricsOptions, metricsAddress, type OTLP } from './address.js';
import { otlpTarget } from './otlp-target.js';
import type { MetricsSource, Served } from './server.js';

interface Open {
  readonly served: Served | null;
  /** Sends the last counts and ends. */
  readonly endSending: (() => Promise<void>) | null;
}

/**
 * The metrics of one loader over HTTP, from its first iteration until it is closed: served for Prometheus, sent by OTLP,
 * or both. The code of the server and of the sender is loaded only if metrics are requested.
 */
export class MetricsService {
  #opening: Promise<Open> | null = null;
  #url: string | null = null;

  /** URL of the metrics; null while they are not served. */
  get url(): string | null {
    return this.#url;
  }

  /** Serves and sends the metrics as `option` and `environment` request, unless that has begun. Throws {@link OptionError}. */
  async start(
    option: MetricsOptions | typeof OTLP | false | undefined,
    environment: Readonly<Record<string, string | undefined>>,
    source: MetricsSource,
  ): Promise<void> {
    this.#opening ??= open(option, environment, source);
    try {
      this.#url = (await this.#opening).served?.url ?? null;
    } catch (error) {
      this.#opening = null;
      throw error;
    }
  }

  async stop(): Promise<void> {
    const opening = this.#opening;
    this.#opening = null;
    this.#url = null;
    const opened = await opening?.catch(() => null);
    await Promise.all([opened?.served?.close(), opened?.endSending?.()]);
  }
}

async function open(
  option: MetricsOptions | typeof OTLP | false | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  source: MetricsSource,
): Promise<Open> {
  const address = metricsAddress(option, environment);
  const target = otlpTarget(option, environment);
  const served = address === null ? null : await (await import('./server.js')).serveMetrics(address, source);
  const endSending = target === null ? null : (await import('./otlp.js')).sendMetrics(target, source);
  return { served, endSending };
}
