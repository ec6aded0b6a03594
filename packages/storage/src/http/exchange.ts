import type { IncomingHttpHeaders } from 'node:http';
import { FileError } from '../errors.js';
import { shownLocation } from '../location.js';
import type { StorageCounts } from '../storage.js';
import { agentFor, SILENCE_MS } from './agents.js';
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

/** What came, and what was asked for last. `text` is the body of what no place was found for, cut at {@link MOST_TEXT}. */
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
  /** Where the body of this answer goes; null: it is an error, or text. May throw. */
  place?(status: number, headers: IncomingHttpHeaders): Uint8Array | null;
  /** A redirect that says what is asked for, and is not followed. */
  readonly isAnswer?: ((answer: Answer) => boolean) | undefined;
}

const MOST_TEXT = 8 << 20;
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

function once(request: HttpRequest, options: ExchangeOptions): Promise<Answer> {
  const { method, url, headers, body } = request;
  const { counts, signal } = options;
  counts.requests++;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    let status = 0;
    let answered: IncomingHttpHeaders = {};
    let target: Uint8Array | null = null;
    let received = 0;
    let texts: Buffer[] = [];
    let onAbort = (): void => {};
    const settle = (): void => signal?.removeEventListener('abort', onAbort);
    const fail = (error: unknown): void => {
      settle();
      reject(error);
    };
    agentFor(url, options.fresh === true).dispatch(
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
            // First, so that it is not heard of as a connection that broke.
            fail(signal!.reason);
            controller.abort(signal!.reason instanceof Error ? signal!.reason : new Error('aborted'));
          };
          if (signal?.aborted) onAbort();
          else signal?.addEventListener('abort', onAbort, { once: true });
        },
        onResponseStart(controller, statusCode, responseHeaders) {
          if (statusCode < 200) return;
          status = statusCode;
          answered = responseHeaders;
          try {
            target = options.place?.(status, answered) ?? null;
          } catch (error) {
            fail(error);
            controller.abort(error as Error);
          }
        },
        onResponseData(controller, chunk) {
          counts.bytes += chunk.length;
          if (target === null) {
            received += chunk.length;
            if (received <= MOST_TEXT) texts.push(chunk);
            return;
          }
          if (received + chunk.length > target.length) {
            const error = new TransientError('more bytes came than were asked for');
            fail(error);
            controller.abort(error);
            return;
          }
          target.set(chunk, received);
          received += chunk.length;
        },
        onResponseEnd() {
          settle();
          if (target !== null && received < target.length) {
            return reject(new TransientError(`the answer ends after ${received} of ${target.length} bytes`));
          }
          const text = texts.length === 0 ? '' : Buffer.concat(texts).toString();
          texts = [];
          resolve({ request, status, headers: answered, received: target === null ? 0 : received, text });
        },
        onResponseError(_controller, error) {
          fail(refusedForGood(url, error) ?? new TransientError(reasonOf(error), { cause: error }));
        },
      },
    );
  });
}

/** What undici's error says, without the URL of a proxy or a server in it. */
function reasonOf(error: Error & { code?: string }): string {
  const inner = error instanceof AggregateError ? (error.errors[0] as Error & { code?: string }) : error;
  const known: Record<string, string> = {
    UND_ERR_CONNECT_TIMEOUT: 'no connection within 5 seconds',
    UND_ERR_HEADERS_TIMEOUT: 'no answer within 10 seconds',
    UND_ERR_BODY_TIMEOUT: 'no byte for 10 seconds',
    UND_ERR_SOCKET: 'the connection was closed',
    UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the answer ends early',
    ECONNREFUSED: 'the connection was refused',
    ECONNRESET: 'the connection was reset',
    EAI_AGAIN: 'the name of the host cannot be looked up now',
  };
  const code = inner.code ?? error.code ?? '';
  return known[code] ?? (code === '' ? inner.message.replace(/https?:\/\/\S+/g, '') : code);
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
