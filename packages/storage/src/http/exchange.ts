import type { IncomingHttpHeaders } from 'node:http';
import { isMainThread } from 'node:worker_threads';
import { FileError } from '@shardtool/base';
import { shownLocation } from '../location/location.js';
import type { StorageCounts } from '../storage.js';
import { isProxied } from './connecting.js';
import { LEAST_BYTES, WINDOW_MS, watchRate } from './least-rate.js';
import { BrokenError, type Place, Reception } from './reception.js';
import { TransientError } from './retry.js';

export interface HttpRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  /** Redirects within the same host and port keep the headers that say who asks. */
  readonly credentialsOnOwnHost?: boolean;
  /** Hears of a redirect to another host. */
  readonly onOtherHost?: (to: URL) => void;
}

/** What came, and what was asked for last. `text` is the body of what no place was found for, cut at 8 MiB. */
export interface Answer {
  readonly request: HttpRequest;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Bytes that went to the place that was found. */
  readonly received: number;
  readonly text: string;
}

export interface ExchangeOptions {
  readonly counts: StorageCounts;
  /** On a connection of its own. */
  readonly fresh?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Where bytes are expected. */
  readonly place?: Place;
  /** A redirect that says what is asked for, and is not followed. */
  readonly isAnswer?: ((answer: Answer) => boolean) | undefined;
}

const MOST_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Headers that say who asks. */
const CREDENTIALS = /^(authorization|cookie|proxy-authorization|x-amz-security-token|x-amz-request-payer)$/;

/**
 * Asks once, following redirects: without credentials on other hosts, at most five times, never from https to http. Rejects with
 * {@link TransientError} for what another try may mend: no connection, silence, a reset, a body that ends early.
 */
export async function exchange(request: HttpRequest, options: ExchangeOptions): Promise<Answer> {
  let current = request;
  for (let redirects = 0; ; redirects++) {
    const answer = await once(current, options);
    const to = answer.headers.location;
    if (options.isAnswer?.(answer)) return answer;
    if (!REDIRECTS.has(answer.status) || to === undefined || current.method === 'PUT' || current.method === 'POST')
      return answer;
    if (redirects === MOST_REDIRECTS)
      throw refusedRedirect(request.url, `it is redirected more than ${MOST_REDIRECTS} times`);
    const next = new URL(to, current.url);
    if (current.url.protocol === 'https:' && next.protocol !== 'https:') {
      throw refusedRedirect(request.url, `it is redirected from https to ${next.protocol.slice(0, -1)}`);
    }
    const isOwn = next.origin === current.url.origin;
    if (!isOwn) current.onOtherHost?.(next);
    const keeps = isOwn && current.credentialsOnOwnHost === true;
    const headers = Object.fromEntries(
      Object.entries(current.headers).filter(([name]) => (keeps || !CREDENTIALS.test(name)) && name !== 'host'),
    );
    current = { ...current, url: next, headers };
  }
}

async function once(request: HttpRequest, options: ExchangeOptions): Promise<Answer> {
  const { counts, signal, fresh = false, place = () => null } = options;
  counts.requests++;
  signal?.throwIfAborted();
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal!.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  let endWatch = (): void => undefined;
  const reception: Reception = new Reception(counts, (status, headers) => {
    endWatch = watchRate(
      () => reception.bytes,
      () =>
        stop.abort(
          new TransientError(`the answer came too slowly: less than ${LEAST_BYTES} bytes in ${WINDOW_MS / 1000} s`),
        ),
    );
    return place(status, headers);
  });
  // What is fetched into memory that is there is the most of all, and goes the shortest way.
  const isBytes = options.place !== undefined && request.method === 'GET';
  const { ask } = isBytes && !isProxied(request.url) ? await direct() : await throughUndici();
  try {
    await ask(request, reception, { fresh, signal: stop.signal });
  } catch (error) {
    if (!(error instanceof BrokenError)) throw error;
    const { cause } = error;
    const wasNeverReached = isMainThread && !reached.has(request.url.origin) && UNREACHED.has(codeOf(cause));
    throw refusedForGood(request.url, cause) ?? new TransientError(reasonOf(cause), { cause, wasNeverReached });
  } finally {
    endWatch();
    signal?.removeEventListener('abort', onAbort);
  }
  reached.add(request.url.origin);
  const { status, headers, received } = reception;
  return { request, status, headers, received, text: reception.end() };
}

/** Hosts that have answered this thread. Other threads begin when the main one has had answers. */
const reached = new Set<string>();

/** What is said of a host to which there is no connection. */
const UNREACHED = new Set([
  ...['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EAI_AGAIN'],
  ...['CONNECT_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT'],
]);

/** Each is loaded by who needs it: a thread that reads asks directly, and undici takes long. */
const direct = () => import('./direct/connections.js').then(({ askDirectly: ask }) => ({ ask }));
const throughUndici = () => import('./agents.js').then(({ askThroughUndici: ask }) => ({ ask }));

/** What the system's error, or undici's, says, without the URL of a proxy or a server in it. */
function reasonOf(error: Error & { code?: string }): string {
  const inner = innerOf(error);
  const known: Record<string, string> = {
    CONNECT_TIMEOUT: 'no connection within 5 seconds',
    UND_ERR_CONNECT_TIMEOUT: 'no connection within 5 seconds',
    UND_ERR_HEADERS_TIMEOUT: 'no answer within 10 seconds',
    UND_ERR_BODY_TIMEOUT: 'no byte for 10 seconds',
    UND_ERR_SOCKET: 'the connection was closed',
    UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the answer ends early',
    ECONNREFUSED: 'the connection was refused',
    ECONNRESET: 'the connection was reset',
    EAI_AGAIN: 'the name of the host cannot be looked up now',
  };
  const code = codeOf(error);
  return known[code] ?? (code === '' ? inner.message.replace(/https?:\/\/\S+/g, '') : code);
}

/** An address of several ends with an error for each of them. */
function innerOf(error: Error & { code?: string }): Error & { code?: string } {
  return error instanceof AggregateError ? (error.errors[0] as Error & { code?: string }) : error;
}

function codeOf(error: Error & { code?: string }): string {
  return innerOf(error).code ?? error.code ?? '';
}

/** What a system or TLS says of a certificate that is not to be trusted. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/;

/** What undici says where a proxy wants to know who asks. */
const PROXY_REFUSED = /^Proxy .*\(407\)/;

/** What no other try mends; null for all else. A name that cannot be looked up now (EAI_AGAIN) may be known later. */
function refusedForGood(url: URL, cause: Error & { code?: string }): FileError | null {
  const path = shownLocation(url.href);
  const { code = '' } = cause;
  if (code === 'ENOTFOUND') {
    return new FileError({ path }, `${path} cannot be reached: no host of this name is known; check the location.`, {
      cause,
    });
  }
  if (CERTIFICATE.test(code)) {
    const remedy =
      'where an authority of your own has signed it, let AWS_CA_BUNDLE or NODE_EXTRA_CA_CERTS name its file';
    const message = `${path} cannot be read: the certificate of its server is not trusted (${code}); ${remedy}.`;
    return new FileError({ path }, message, { cause });
  }
  if (PROXY_REFUSED.test(cause.message)) {
    const message = `${path} cannot be reached: the proxy asks for a user and a password; write them into HTTPS_PROXY or HTTP_PROXY.`;
    return new FileError({ path }, message, { cause });
  }
  return null;
}

function refusedRedirect(url: URL, why: string): FileError {
  const path = shownLocation(url.href);
  return new FileError({ path }, `${path} cannot be read: ${why}; give the location where it is.`);
}
