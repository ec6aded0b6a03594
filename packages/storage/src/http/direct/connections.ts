import { FileError } from '@shardtool/base';
import { shownLocation } from '../../location/location.js';
import { CONNECTIONS } from '../connecting.js';
import type { HttpRequest } from '../exchange.js';
import { BrokenError, type Reception } from '../reception.js';
import { Connection } from './connection.js';

/** The connections of this thread to one host. */
class Host {
  /** The one that was used last comes first: the others may end. */
  readonly #idle: Connection[] = [];
  readonly #waiting: (() => void)[] = [];
  #busy = 0;
  /** Of the last connection over TLS. */
  #session: Buffer | undefined;

  async ask(request: HttpRequest, reception: Reception, { fresh, signal }: AskOptions): Promise<void> {
    if (this.#busy < CONNECTIONS) this.#busy++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      signal?.throwIfAborted();
      const question = questionOf(request, fresh);
      const used = fresh ? undefined : this.#usable();
      if (used !== undefined) {
        try {
          return await this.#askOn(used, question, reception, signal);
        } catch (error) {
          // The server had closed it meanwhile.
          if (!(error instanceof BrokenError && error.isUnanswered) || signal?.aborted) throw error;
        }
      }
      await this.#askOn(this.#connect(request.url), question, reception, signal);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#busy--;
      else next();
    }
  }

  async #askOn(
    connection: Connection,
    question: string,
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

  #connect(url: URL): Connection {
    const connection: Connection = new Connection(url, {
      session: this.#session,
      onSession: (session) => {
        this.#session = session;
      },
      onEnd: () => {
        const at = this.#idle.indexOf(connection);
        if (at >= 0) this.#idle.splice(at, 1);
      },
    });
    return connection;
  }
}

const hosts = new Map<string, Host>();

interface AskOptions {
  /** On a connection of its own. */
  readonly fresh: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Asks without a proxy in between, and resolves when all of the answer has come. */
export function askDirectly(request: HttpRequest, reception: Reception, options: AskOptions): Promise<void> {
  const { origin } = request.url;
  let host = hosts.get(origin);
  if (host === undefined) {
    host = new Host();
    hosts.set(origin, host);
  }
  return host.ask(request, reception, options);
}

/** The question as it is written. */
function questionOf({ method, url, headers }: HttpRequest, isLast: boolean): string {
  const lines = [`${method} ${url.pathname}${url.search} HTTP/1.1`];
  const all = { host: url.host, ...headers, connection: isLast ? 'close' : 'keep-alive' };
  for (const [name, value] of Object.entries(all)) lines.push(`${name}: ${value}`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for.
  if (lines.some((line) => /[\0-\x08\x0a-\x1f\x7f]|[^\0-\xff]/.test(line))) {
    const path = shownLocation(url.href);
    throw new FileError({ path }, `${path} cannot be asked for: a header has characters that none may have.`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}
