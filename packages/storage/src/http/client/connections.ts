import { FileError } from '@shardtool/base';
import { shownLocation } from '../../location/location.js';
import type { HttpRequest } from '../exchange.js';
import { Connection, type Question } from './connection.js';
import { type HttpProxy, proxyFor, proxyUnauthorized } from './proxy.js';
import { BrokenError, type Reception } from './reception.js';

/** Maximum number of connections of a thread to one host. Plans of reads use far fewer at a time. */
const CONNECTIONS = 256;

interface AskOptions {
  /** Whether to use a new connection, which is not reused afterwards. */
  readonly fresh: boolean;
  readonly signal: AbortSignal | undefined;
}

/** The connections of this thread to one host. */
class Host {
  readonly #proxy: HttpProxy | null;
  /** The connection that was used last is the last element: the server may have closed the others. */
  readonly #idle: Connection[] = [];
  /** Requests that wait for a free connection, oldest first. Each entry starts one. */
  readonly #waiting = new Set<() => void>();
  #busy = 0;
  /** Session of the last TLS connection. */
  #session: Buffer | undefined;

  constructor(proxy: HttpProxy | null) {
    this.#proxy = proxy;
  }

  async ask(request: HttpRequest, reception: Reception, { fresh, signal }: AskOptions): Promise<void> {
    if (this.#busy < CONNECTIONS) this.#busy++;
    else await this.#turn(signal);
    try {
      signal?.throwIfAborted();
      const question = questionOf(request, this.#proxy, fresh);
      const used = fresh ? undefined : this.#usable();
      if (used !== undefined) {
        try {
          return await this.#askOn(used, question, reception, signal);
        } catch (error) {
          // The server may have closed the connection while it was idle.
          if (!(error instanceof BrokenError && error.isUnanswered) || signal?.aborted) throw error;
        }
      }
      await this.#askOn(await this.#connect(request.url, signal), question, reception, signal);
    } finally {
      const [next] = this.#waiting;
      if (next === undefined) this.#busy--;
      else {
        this.#waiting.delete(next);
        next();
      }
    }
  }

  /** Resolves when a connection is free for this request. Rejects with the reason of the signal. */
  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = (): void => {
        this.#waiting.delete(start);
        reject(signal!.reason);
      };
      if (signal?.aborted) return onAbort();
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(start);
    });
  }

  async #askOn(
    connection: Connection,
    question: Question,
    reception: Reception,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    await connection.ask(question, reception, signal);
    if (connection.isIdle) this.#idle.push(connection);
  }

  #usable(): Connection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.isIdle) return connection;
    }
  }

  async #connect(url: URL, signal: AbortSignal | undefined): Promise<Connection> {
    const connection: Connection = await Connection.open(url, {
      proxy: this.#proxy,
      session: this.#session,
      onSession: (session) => {
        this.#session = session;
      },
      signal,
      onEnd: () => {
        const at = this.#idle.indexOf(connection);
        if (at >= 0) this.#idle.splice(at, 1);
      },
    });
    return connection;
  }
}

const hosts = new Map<string, Host>();

/**
 * Sends a request, and resolves when all of the answer has come. HTTPS_PROXY, HTTP_PROXY and NO_PROXY decide whether it goes through
 * a proxy. Rejects with the errors of `reception`, BrokenError and TransientError, and FileError if the request or a proxy is wrong.
 */
export async function askHost(request: HttpRequest, reception: Reception, options: AskOptions): Promise<void> {
  const { url } = request;
  const proxy = proxyFor(url);
  const key = `${url.origin} ${proxy?.url.href ?? ''}`;
  let host = hosts.get(key);
  if (host === undefined) {
    host = new Host(proxy);
    hosts.set(key, host);
  }
  await host.ask(request, reception, options);
  if (proxy !== null && reception.status === 407) throw proxyUnauthorized(url);
}

/** Methods whose requests have a length even without a body (RFC 9110, section 8.6). */
const WITH_BODY = new Set(['PUT', 'POST']);

/** Writes out a request. For a proxy, a request for http has a whole URL and the user of the proxy (RFC 9112, section 3.2.2). */
function questionOf({ method, url, headers, body }: HttpRequest, proxy: HttpProxy | null, isLast: boolean): Question {
  const isForwarded = proxy !== null && url.protocol === 'http:';
  const all: Record<string, string> = { host: url.host, ...headers, connection: isLast ? 'close' : 'keep-alive' };
  if (body !== undefined || WITH_BODY.has(method)) all['content-length'] = String(body?.length ?? 0);
  if (isForwarded && proxy.authorization !== null) all['proxy-authorization'] = proxy.authorization;
  const lines = [`${method} ${isForwarded ? url.origin : ''}${url.pathname}${url.search} HTTP/1.1`];
  for (const [name, value] of Object.entries(all)) lines.push(`${name}: ${value}`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: headers must not have control characters.
  if (lines.some((line) => /[\0-\x08\x0a-\x1f\x7f]|[^\0-\xff]/.test(line))) {
    const path = shownLocation(url.href);
    throw new FileError(
      { path },
      `${path} cannot be requested: a header contains characters that are not allowed in headers.`,
    );
  }
  return { method, head: `${lines.join('\r\n')}\r\n\r\n`, body };
}
