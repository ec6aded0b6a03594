// All of undici takes three times as long to load.
import connect from 'undici/lib/api/api-connect.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import EnvHttpProxyAgent from 'undici/lib/dispatcher/env-http-proxy-agent.js';
import { CONNECT_MS, CONNECTIONS, hasProxy, SILENCE_MS, trusted } from './connecting.js';
import type { HttpRequest } from './exchange.js';
import { BrokenError, type Reception } from './reception.js';

const agents = new Map<string, Dispatcher>();

/**
 * What this thread asks with: with `fresh`, on a connection of its own, as what is tried again is. HTTPS_PROXY, HTTP_PROXY and
 * NO_PROXY say where requests go, NODE_EXTRA_CA_CERTS or AWS_CA_BUNDLE whom they trust.
 */
function agentFor({ protocol }: URL, fresh: boolean): Dispatcher {
  // Certificates take long to read, and http needs none.
  const proxy = process.env.http_proxy ?? process.env.HTTP_PROXY ?? '';
  const isSecure = protocol === 'https:' || /^https:/i.test(proxy);
  const kind = `${isSecure} ${fresh}`;
  let agent = agents.get(kind);
  if (agent === undefined) {
    agent = makeAgent(fresh ? 0 : 1, isSecure);
    agents.set(kind, agent);
  }
  return agent;
}

function makeAgent(pipelining: number, isSecure: boolean): Dispatcher {
  // A tunnel through a proxy is made by a method that dispatchers have only where all of undici is loaded.
  if (hasProxy()) Dispatcher.prototype.connect = connect;
  const tls = { timeout: CONNECT_MS, ...(isSecure && trusted()) };
  return new EnvHttpProxyAgent({
    connections: CONNECTIONS,
    pipelining,
    connect: tls,
    requestTls: tls,
    proxyTls: tls,
    // As other software asks a proxy for http: many proxies make tunnels to https alone.
    proxyTunnel: false,
    keepAliveTimeout: 15_000,
  });
}

/** Asks through undici, and resolves when all of the answer has come. Rejects with what `reception` throws, and {@link BrokenError}. */
export function askThroughUndici(
  { method, url, headers, body }: HttpRequest,
  reception: Reception,
  { fresh, signal }: { readonly fresh: boolean; readonly signal: AbortSignal | undefined },
): Promise<void> {
  return new Promise((resolve, reject) => {
    let onAbort = (): void => {};
    const settle = (): void => signal?.removeEventListener('abort', onAbort);
    const fail = (error: unknown): void => {
      settle();
      reject(error);
    };
    /** What the reception throws ends the request. */
    const attempt = (controller: { abort(reason: Error): void }, receive: () => void): void => {
      try {
        receive();
      } catch (error) {
        // First, so that it is not heard of as a connection that broke.
        fail(error);
        controller.abort(error as Error);
      }
    };
    agentFor(url, fresh).dispatch(
      {
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers: { ...headers },
        body: body ?? null,
        headersTimeout: SILENCE_MS,
        bodyTimeout: SILENCE_MS,
      },
      {
        onRequestStart(controller) {
          onAbort = () => {
            fail(signal!.reason);
            controller.abort(signal!.reason instanceof Error ? signal!.reason : new Error('aborted'));
          };
          if (signal?.aborted) onAbort();
          else signal?.addEventListener('abort', onAbort, { once: true });
        },
        onResponseStart(controller, status, answered) {
          if (status >= 200) attempt(controller, () => reception.begin(status, answered));
        },
        onResponseData(controller, chunk) {
          attempt(controller, () => reception.take(chunk));
        },
        onResponseEnd() {
          settle();
          resolve();
        },
        onResponseError(_controller, error) {
          fail(new BrokenError(error));
        },
      },
    );
  });
}
