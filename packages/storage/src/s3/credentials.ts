import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import { homedir } from 'node:os';

/** Access key of the requests. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** Returns credentials, and caches them while they are valid. Throws if none are found. */
export type Provider = (options?: { forceRefresh?: boolean }) => Promise<Credentials>;

/** Time limit in which a credentials endpoint of this machine must accept a connection. */
const PATIENCE_MS = 1000;
/** Time limit for all requests to an endpoint that accepts connections. */
const ANSWER_MS = 5000;

/**
 * Sources of credentials, in the order of the AWS tools: environment, profiles, web identity, and then the endpoints of
 * containers and instances.
 */
export async function providerFor(scheme: 's3' | 'gs'): Promise<Provider> {
  const { env } = process;
  const accessKeyId = env.GS_ACCESS_KEY_ID;
  const secretAccessKey = env.GS_SECRET_ACCESS_KEY;
  if (scheme === 'gs' && accessKeyId && secretAccessKey) return async () => ({ accessKeyId, secretAccessKey });
  if (!hasHome()) env.HOME = '/';
  const { defaultProvider } = await import('@aws-sdk/credential-provider-node');
  // Files with credentials are read again for each new look-up, because they may have been replaced.
  const provider = defaultProvider({ timeout: PATIENCE_MS, maxRetries: 0, ignoreCache: true }) as Provider;
  limitEndpoints();
  return (options) => lookUp.run(true, () => provider(options));
}

/**
 * Whether the user has a home folder. Without one, as for a user who is only a number in a container, the library ends
 * the look-up at the profiles and never asks the container's endpoint.
 */
function hasHome(): boolean {
  try {
    return homedir() !== '';
  } catch {
    return false;
  }
}

/** Set in all asynchronous operations of a look-up of credentials. */
const lookUp = new AsyncLocalStorage<boolean>();

let isLimited = false;

/**
 * Ends requests of look-ups that get no answer. The library waits indefinitely for a container's endpoint, and the
 * request would keep the process alive. These endpoints use plain HTTP. Sign-in services, which take longer, do not.
 */
function limitEndpoints(): void {
  if (isLimited) return;
  isLimited = true;
  subscribe('http.client.request.start', (message) => {
    const { request } = message as { readonly request: ClientRequest };
    if (lookUp.getStore() !== true || request.protocol !== 'http:') return;
    const timer = setTimeout(() => giveUp(request), ANSWER_MS);
    request.once('close', () => clearTimeout(timer));
  });
}

/** A waiting caller is notified even if the response has begun; a destroyed request reports only to its response. */
function giveUp(request: ClientRequest): void {
  const error = new Error(`${request.host} has not answered for ${ANSWER_MS / 1000} s`);
  if (request.listenerCount('error') > 0) request.emit('error', error);
  request.destroy();
}
