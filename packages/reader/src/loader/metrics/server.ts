/** Serves the metrics of this process' loaders over HTTP. A server lives as long as one of its loaders is open. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { OptionError, warn } from '@shardtool/base';
import type { MetricsAddress } from './address.js';
import { EXPOSITION_TYPE, exposition, type LabelledTotals } from './exposition.js';

/** A loader as seen by the server. */
export type MetricsSource = () => LabelledTotals;

/** A loader's part in a server. */
export interface Served {
  /** `http://127.0.0.1:9464/metrics`. */
  readonly url: string;
  /** Stops serving the loader. */
  close(): Promise<void>;
}

interface Shared {
  readonly listening: Promise<Server>;
  readonly sources: Set<MetricsSource>;
}

/** Servers by host and port, as they were requested. */
const SERVERS = new Map<string, Shared>();

/**
 * Serves a loader, together with other loaders of this process that use the same port. If the port from the environment
 * cannot be used, warns and returns null. Throws {@link OptionError} for a port that an option names.
 */
export async function serveMetrics(address: MetricsAddress, source: MetricsSource): Promise<Served | null> {
  const { host, port } = address;
  const name = `${host} ${port}`;
  let shared = SERVERS.get(name);
  if (shared === undefined) {
    const sources = new Set<MetricsSource>();
    shared = { listening: listen(address, sources), sources };
    SERVERS.set(name, shared);
  }
  const { listening, sources } = shared;
  sources.add(source);
  const leave = (): boolean => sources.delete(source) && sources.size === 0 && SERVERS.get(name) === shared;
  try {
    const server = await listening;
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}/metrics`;
    return {
      url,
      async close() {
        if (!leave()) return;
        SERVERS.delete(name);
        await ended(server);
      },
    };
  } catch (error) {
    if (leave()) SERVERS.delete(name);
    const sentence = cannotListen(address, error as NodeJS.ErrnoException);
    if (address.source === 'metrics') throw new OptionError({}, sentence, { cause: error });
    warn('SHARDTOOL_METRICS_NOT_SERVED', `${sentence} This process serves no metrics.`);
    return null;
  }
}

function cannotListen({ host, port, source }: MetricsAddress, { code, message }: NodeJS.ErrnoException): string {
  const why = code === 'EADDRINUSE' ? 'another process uses this port' : message;
  return `Metrics cannot be served on ${host}:${port} (${why}): set ${source} to another port, or remove it.`;
}

function listen({ host, port }: MetricsAddress, sources: ReadonlySet<MetricsSource>): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((request, response) => {
      const isKnown = request.url?.split('?')[0] === '/metrics';
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      if (!isKnown || !isRead) {
        response.writeHead(isKnown ? 405 : 404, { 'content-type': 'text/plain' }).end('Metrics are at GET /metrics.\n');
        return;
      }
      const text = exposition(Array.from(sources, (source) => source()));
      response.writeHead(200, { 'content-type': EXPOSITION_TYPE, 'content-length': Buffer.byteLength(text) }).end(text);
    });
    server.once('error', reject);
    server.listen(port, host, () => {
      // The server does not keep the program running.
      server.unref();
      resolve(server);
    });
  });
}

function ended(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
