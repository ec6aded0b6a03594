import type { IncomingHttpHeaders } from 'node:http';
import { isMainThread } from 'node:worker_threads';
import { FileError } from '@shardtool/base';
import { shownLocation } from '../location/location.js';
import type { StorageCounts } from '../storage.js';
import { askHost } from './client/connections.js';
import { BrokenError, type Place, Reception } from './client/reception.js';
import { CONNECT_TIMEOUT, TUNNEL_FAILED } from './client/socket.js';
import { LEAST_BYTES, POST_WINDOW_MS, WINDOW_MS, watchRate } from './least-rate.js';
import { TransientError } from './retry.js';

export interface HttpRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  /** True if redirects within the same host and port keep the headers with credentials. */
  readonly credentialsOnOwnHost?: boolean;
  /** Called for a redirect to another host. */
  readonly onOtherHost?: (to: URL) => void;
}

/** An answer, and the request that it belongs to: the last one, after redirects. */
export interface Answer {
  readonly request: HttpRequest;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Number of bytes of the body that were written to the memory that {@link Place} returned. */
  readonly received: number;
  /** The body if it was not written to memory of a {@link Place}, cut at 8 MiB. */
  readonly text: string;
}

export interface ExchangeOptions {
  readonly counts: StorageCounts;
  /** Whether to use a new connection, which is not reused afterwards. */
  readonly fresh?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly place?: Place;
  /** Returns true for a redirect that already answers the request, and is not followed. */
  readonly isAnswer?: ((answer: Answer) => boolean) | undefined;
}

const MOST_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Headers with credentials. */
const CREDENTIALS = /^(authorization|cookie|proxy-authorization|x-amz-security-token|x-amz-request-payer)$/;

/**
 * Sends a request once and follows redirects: without credentials to other hosts, at most five times, never from https to http.
 * Rejects with {@link TransientError} if another try may succeed: no connection, silence, a reset, a body that ends early.
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
    if (!URL.canParse(to, current.url.href))
      throw new TransientError('the server redirects to a URL that is not valid');
    const next = new URL(to, current.url);
    const from = current.url.protocol;
    if (next.protocol !== 'https:' && (next.protocol !== 'http:' || from === 'https:')) {
      throw refusedRedirect(request.url, `it is redirected from ${from.slice(0, -1)} to ${next.protocol.slice(0, -1)}`);
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
  const windowMs = request.method === 'POST' ? POST_WINDOW_MS : WINDOW_MS;
  const reception: Reception = new Reception(counts, (status, headers) => {
    endWatch = watchRate(
      () => reception.bytes,
      windowMs,
      () =>
        stop.abort(
          new TransientError(`the answer came too slowly: less than ${LEAST_BYTES} bytes in ${windowMs / 1000} s`),
        ),
    );
    return place(status, headers);
  });
  const { origin } = request.url;
  try {
    await askHost(request, reception, { fresh, signal: stop.signal });
  } catch (error) {
    if (!(error instanceof BrokenError)) throw error;
    const { cause } = error;
    const wasNeverReached = isMainThread && !reached.has(origin) && UNREACHED.has(codeOf(cause));
    throw refusedForGood(request.url, cause) ?? new TransientError(reasonOf(cause), { cause, wasNeverReached });
  } finally {
    endWatch();
    signal?.removeEventListener('abort', onAbort);
  }
  reached.add(origin);
  const { status, headers, received } = reception;
  return { request, status, headers, received, text: reception.end() };
}

/** Hosts that have answered this thread. Other threads start after the main thread has had answers. */
const reached = new Set<string>();

/** Codes of errors of a host that cannot be connected to. */
const UNREACHED = new Set([
  ...['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EAI_AGAIN'],
  ...[CONNECT_TIMEOUT, TUNNEL_FAILED],
]);

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
  ENOTFOUND: 'the name of the host cannot be looked up now',
};

/** The reason that an error gives, without the URL of a proxy or server in it. */
function reasonOf(error: Error & { code?: string }): string {
  const code = codeOf(error);
  const isOurs = code === '' || code === CONNECT_TIMEOUT || code === TUNNEL_FAILED;
  return REASONS[code] ?? (isOurs ? innerOf(error).message.replace(/https?:\/\/\S+/g, '') : code);
}

/** A host with several addresses fails with an error for each of them. */
function innerOf(error: Error & { code?: string }): Error & { code?: string } {
  return error instanceof AggregateError ? (error.errors[0] as Error & { code?: string }) : error;
}

function codeOf(error: Error & { code?: string }): string {
  return innerOf(error).code ?? error.code ?? '';
}

/** Codes of a certificate that is not trusted. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/;

/**
 * The error for a failure that another try cannot fix; null for others. A name that cannot be looked up now (EAI_AGAIN)
 * may be found later, and so may the name of a host that has answered before.
 */
function refusedForGood(url: URL, cause: Error & { code?: string }): FileError | null {
  const path = shownLocation(url.href);
  const { code = '' } = cause;
  if (code === 'ENOTFOUND' && isMainThread && !reached.has(url.origin)) {
    return new FileError(
      { path },
      `${path} cannot be reached: unknown host; check the location, and the endpoint if there is one.`,
      {
        cause,
      },
    );
  }
  if (!CERTIFICATE.test(code)) return null;
  const remedy =
    'if a certificate authority of your own has signed it, set AWS_CA_BUNDLE or NODE_EXTRA_CA_CERTS to the file of that authority';
  const message = `${path} cannot be read: the certificate of its server is not trusted (${code}); ${remedy}.`;
  return new FileError({ path }, message, { cause });
}

function refusedRedirect(url: URL, why: string): FileError {
  const path = shownLocation(url.href);
  return new FileError({ path }, `${path} cannot be read: ${why}; use the target of the redirect as the location.`);
}
