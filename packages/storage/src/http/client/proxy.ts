import { FileError, OptionError } from '@shardtool/base';
import { shownLocation } from '../../location/location.js';

/** A proxy, and the `Proxy-Authorization` that it gets if its URL has a user and a password. */
export interface HttpProxy {
  readonly url: URL;
  readonly authorization: string | null;
}

/**
 * Returns the proxy that the environment names for a URL; null if the request goes directly to its host. `HTTP_PROXY` is used for
 * http, `HTTPS_PROXY` for https, and `HTTP_PROXY` for both if `HTTPS_PROXY` is not set. `NO_PROXY` lists hosts that are asked
 * directly. Names in lower case come first, as for curl. Throws {@link OptionError} if the value is not the URL of a proxy.
 */
export function proxyFor(url: URL): HttpProxy | null {
  const names = url.protocol === 'https:' ? ['HTTPS_PROXY', 'HTTP_PROXY'] : ['HTTP_PROXY'];
  const name = names.find(variable);
  if (name === undefined || isExcluded(url)) return null;
  return parseProxy(name, variable(name)!);
}

function variable(name: string): string | undefined {
  return process.env[name.toLowerCase()] ?? process.env[name];
}

/** Returns true if `NO_PROXY` lists the host: `*`, or names with an optional port, which also stand for their subdomains. */
function isExcluded({ hostname, port: ownPort, protocol }: URL): boolean {
  const list = variable('NO_PROXY') ?? '';
  if (list === '*') return true;
  const name = hostname.toLowerCase();
  const port = ownPort || (protocol === 'https:' ? '443' : '80');
  return list
    .split(/[,\s]/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (`[${entry}]` === name) return true; // An IPv6 address without brackets.
      const [, listed = entry, listedPort = port] = /^(.+):(\d+)$/.exec(entry) ?? [];
      const domain = listed.replace(/^\*?\./, '').toLowerCase();
      return listedPort === port && (name === domain || name.endsWith(`.${domain}`));
    });
}

function parseProxy(name: string, value: string): HttpProxy {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(value)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https') {
    const remedy =
      'set it to a URL such as http://proxy.example:3128, or list the host in NO_PROXY to connect to it directly';
    throw new OptionError(
      {},
      `${name} names a ${scheme} proxy, and only http and https proxies are supported: ${remedy}.`,
    );
  }
  try {
    const url = new URL(scheme === undefined ? `http://${value}` : value);
    const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    return { url, authorization: user === ':' ? null : `Basic ${Buffer.from(user).toString('base64')}` };
  } catch {
    // The value may hold a password.
    throw new OptionError({}, `${name} is not the URL of a proxy: set it to a URL such as http://proxy.example:3128.`);
  }
}

/** The error for a proxy that does not accept the user and password of its URL. */
export function proxyUnauthorized(url: URL): FileError {
  const path = shownLocation(url.href);
  return new FileError(
    { path },
    `${path} cannot be reached: the proxy requires a user name and a password; add them to the URL in HTTPS_PROXY or HTTP_PROXY.`,
  );
}

/** The error for a proxy that refuses to connect to a host. */
export function proxyRefused(url: URL, status: number): FileError {
  const path = shownLocation(url.href);
  return new FileError(
    { path },
    `${path} cannot be reached: the proxy refuses to connect to its host (${status}); list the host in NO_PROXY to connect to it directly.`,
  );
}
