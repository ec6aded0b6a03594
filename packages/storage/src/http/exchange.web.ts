/** One HTTP request of a browser, by fetch. `exchange.ts` has the same functions for Node. */
import type { IncomingHttpHeaders } from 'node:http';
import { FileError } from '@shardtool/base';
import { shownLocation } from '../location/location.js';
import { Reception } from './client/reception.js';
import type { Answer, ExchangeOptions, HttpRequest } from './exchange.js';
import { LEAST_BYTES, POST_WINDOW_MS, WINDOW_MS, watchRate } from './least-rate.js';
import { TransientError } from './retry.js';

/** Headers that a page must not set. */
const FORBIDDEN: ReadonlySet<string> = new Set(['accept-encoding', 'host']);

/**
 * How long an answer may take to begin. Browsers let requests wait while they have six to the same server, so it is longer
 * than in Node.
 */
const SILENCE_MS = 60_000;

/** Global names and options of browsers, which the types of Node lack. */
const page = (globalThis as { readonly location?: { readonly origin: string } }).location;
// Browsers answer requests for one URL one after the other if they keep the answers.
const UNKEPT = { cache: 'no-store' } as const;

/** Origins that have answered. */
const reached = new Set<string>();

/**
 * Sends a request once. The browser follows redirects. Rejects with {@link TransientError} if another try may succeed, and with
 * FileError if the server does not allow this page to read the answer (CORS).
 */
export async function exchange(request: HttpRequest, options: ExchangeOptions): Promise<Answer> {
  const { counts, signal, fresh = false, place = () => null } = options;
  const { url, method } = request;
  counts.requests++;
  signal?.throwIfAborted();
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal!.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  let endWatch = (): void => undefined;
  const windowMs = method === 'POST' ? POST_WINDOW_MS : WINDOW_MS;
  const reception = new Reception(counts, (status, headers) => {
    if (status === 206 && headers['content-range'] === undefined) throw hiddenRange(url);
    return place(status, headers);
  });
  try {
    const silent = new TransientError(`no answer within ${SILENCE_MS / 1000} seconds`);
    const silence = setTimeout(() => stop.abort(silent), SILENCE_MS);
    endWatch = () => clearTimeout(silence);
    const response = await answered(request, stop.signal, fresh);
    endWatch();
    reached.add(url.origin);
    const tooSlow = new TransientError(
      `the answer came too slowly: less than ${LEAST_BYTES} bytes in ${windowMs / 1000} s`,
    );
    endWatch = watchRate(
      () => reception.bytes,
      windowMs,
      () => stop.abort(tooSlow),
    );
    const headers: IncomingHttpHeaders = Object.fromEntries(response.headers);
    reception.begin(response.status, headers);
    await receive(response, reception, stop.signal);
    const { status, received } = reception;
    return { request, status, headers, received, text: method === 'HEAD' ? '' : reception.end() };
  } catch (error) {
    // The body of an answer that is not wanted would be fetched to its end.
    stop.abort(error);
    throw error;
  } finally {
    endWatch();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** `isAgain`: an earlier try has failed. */
async function answered(
  { method, url, headers, body }: HttpRequest,
  signal: AbortSignal,
  isAgain: boolean,
): Promise<Response> {
  const isOwn = url.origin === page?.origin;
  // A condition would cost an additional request for each file (CORS preflight). The versions of answers are compared anyway.
  const isSent = (name: string) => !FORBIDDEN.has(name) && (isOwn || name !== 'if-match');
  try {
    return await fetch(url, {
      method,
      headers: Object.fromEntries(Object.entries(headers).filter(([name]) => isSent(name))),
      ...(body !== undefined && { body: body as Uint8Array<ArrayBuffer> }),
      ...UNKEPT,
      signal,
    });
  } catch (cause) {
    signal.throwIfAborted();
    const isAnswered = await isThere(url, signal);
    signal.throwIfAborted();
    // The browser does not say why, and the first failure may have been a lost connection.
    if (isAnswered && !isOwn && isAgain) throw notAllowed(url);
    const reason = isAnswered
      ? 'the connection was lost, or the browser rejects the answer, which the server must not compress'
      : 'the server does not answer';
    const wasNeverReached = !isAnswered && !reached.has(url.origin);
    throw new TransientError(reason, { cause, wasNeverReached });
  }
}

/** True if the server answers a request whose answer the page cannot see: then only its headers are missing. */
async function isThere(url: URL, signal: AbortSignal): Promise<boolean> {
  try {
    await fetch(url, { method: 'HEAD', mode: 'no-cors', ...UNKEPT, signal });
    return true;
  } catch {
    return false;
  }
}

async function receive({ body }: Response, reception: Reception, signal: AbortSignal): Promise<void> {
  const reader = body?.getReader();
  for (;;) {
    let piece: { readonly value?: Uint8Array | undefined } | undefined;
    try {
      piece = await reader?.read();
    } catch (cause) {
      signal.throwIfAborted();
      throw new TransientError('the connection was lost', { cause });
    }
    if (piece?.value === undefined) return;
    reception.take(piece.value);
  }
}

const NEEDED =
  'Access-Control-Allow-Origin (the address of this page, or *), Access-Control-Allow-Headers: Range, and ' +
  'Access-Control-Expose-Headers: Content-Range, ETag';

function notAllowed(url: URL): FileError {
  const path = shownLocation(url.href);
  const who = page?.origin ?? 'this page';
  return new FileError(
    { path },
    `${path} cannot be read: its server answers, but does not allow ${who} to read it (CORS). It has to send ${NEEDED}, and must not compress the file.`,
  );
}

function hiddenRange(url: URL): FileError {
  const path = shownLocation(url.href);
  return new FileError(
    { path },
    `${path} cannot be read: its server hides Content-Range from this page (CORS). It has to send ${NEEDED}.`,
  );
}
