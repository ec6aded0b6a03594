import type { MetricsAddress } from './address.js';
import type { MetricsSource, Served } from './server.js';

/**
 * The metrics of one loader over HTTP, from its first iteration until it is closed. The code of the server is loaded
 * only if metrics are requested.
 */
export class MetricsService {
  #served: Promise<Served | null> | null = null;
  #url: string | null = null;

  /** URL of the metrics; null while they are not served. */
  get url(): string | null {
    return this.#url;
  }

  /** Serves the metrics, unless they are served already. `address` is null if no metrics are requested. */
  async start(address: MetricsAddress | null, source: MetricsSource): Promise<void> {
    if (address === null) return;
    this.#served ??= import('./server.js').then(({ serveMetrics }) => serveMetrics(address, source));
    try {
      this.#url = (await this.#served)?.url ?? null;
    } catch (error) {
      this.#served = null;
      throw error;
    }
  }

  async stop(): Promise<void> {
    const served = this.#served;
    this.#served = null;
    this.#url = null;
    const open = await served?.catch(() => null);
    await open?.close();
  }
}
