import { existsSync, readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
import { FileError } from '@shardtool/base';

/** A server that does not take a connection in this time, or sends nothing for so long, is tried again. */
export const CONNECT_MS = 5_000;
export const SILENCE_MS = 10_000;

/** What a connection ends with that is not there in time. */
export function connectTimeout(): Error {
  return Object.assign(new Error(`no connection within ${CONNECT_MS / 1000} seconds`), { code: 'CONNECT_TIMEOUT' });
}

/** Connections of a thread to one host. Whoever plans reads keeps far fewer under way. */
export const CONNECTIONS = 256;

let trust: SecureContext | undefined;

/**
 * Whom connections trust: made once, since a file of all authorities takes longer to read than a connection to be made.
 * Throws {@link FileError} where AWS_CA_BUNDLE cannot be read.
 */
export function trusted(): { readonly secureContext: SecureContext } {
  trust ??= readTrust();
  return { secureContext: trust };
}

function readTrust(): SecureContext {
  const { AWS_CA_BUNDLE: bundle, NODE_EXTRA_CA_CERTS: extra } = process.env;
  // Node itself trusts the others.
  if (!bundle) return createSecureContext();
  try {
    const more = extra && existsSync(extra) ? [readFileSync(extra)] : [];
    return createSecureContext({ ca: [readFileSync(bundle), ...more] });
  } catch (cause) {
    const message = `${bundle}, which AWS_CA_BUNDLE names, cannot be read (${(cause as Error).message}).`;
    throw new FileError({ path: bundle }, message, { cause });
  }
}

/** Whether HTTPS_PROXY, HTTP_PROXY and NO_PROXY send requests for this host through a proxy, in undici's reading of them. */
export function isProxied({ protocol, host }: URL): boolean {
  if (!hasProxy()) return false;
  const none = process.env.no_proxy ?? process.env.NO_PROXY ?? '';
  if (none === '*') return false;
  const name = host.replace(/:\d*$/, '').toLowerCase();
  const port = /:(\d+)$/.exec(host)?.[1] ?? (protocol === 'https:' ? '443' : '80');
  return !none
    .split(/[,\s]/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      const [, other = entry, otherPort = port] = /^(.+):(\d+)$/.exec(entry) ?? [];
      const domain = other.replace(/^\*?\./, '').toLowerCase();
      return otherPort === port && (name === domain || name.endsWith(`.${domain}`));
    });
}

/** Whether some requests may go through a proxy. */
export function hasProxy(): boolean {
  return ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'].some((name) => process.env[name]);
}
