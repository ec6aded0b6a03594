import { existsSync, readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
import { type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { FileError } from '../errors.js';

/** A server that does not take a connection in this time, or sends nothing for so long, is tried again. */
const CONNECT_MS = 5_000;
export const SILENCE_MS = 10_000;

/** Connections to one host. Whoever plans reads keeps far fewer under way. */
const CONNECTIONS = 256;

interface Agents {
  /** Keeps connections. */
  readonly kept: Dispatcher;
  /** Makes a new one for each request: what a request is tried again on. */
  readonly fresh: Dispatcher;
}

let agents: Agents | null = null;

/**
 * The agents of this thread. HTTPS_PROXY, HTTP_PROXY and NO_PROXY say where requests go, NODE_EXTRA_CA_CERTS or
 * AWS_CA_BUNDLE whom they trust.
 */
export function agentFor(isRetry: boolean): Dispatcher {
  agents ??= { kept: makeAgent(1), fresh: makeAgent(0) };
  return isRetry ? agents.fresh : agents.kept;
}

function makeAgent(pipelining: number): Dispatcher {
  const tls = { timeout: CONNECT_MS, ...trusted() };
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

/**
 * Whom connections trust: made once, since a file of all authorities takes longer to read than a connection to be made.
 * Throws {@link FileError} where AWS_CA_BUNDLE cannot be read.
 */
function trusted(): { readonly secureContext?: SecureContext } {
  const { AWS_CA_BUNDLE: bundle, NODE_EXTRA_CA_CERTS: extra } = process.env;
  // Node itself trusts the others.
  if (!bundle) return {};
  try {
    const more = extra && existsSync(extra) ? [readFileSync(extra)] : [];
    return { secureContext: createSecureContext({ ca: [readFileSync(bundle), ...more] }) };
  } catch (cause) {
    const message = `${bundle}, which AWS_CA_BUNDLE names, cannot be read (${(cause as Error).message}).`;
    throw new FileError({ path: bundle }, message, { cause });
  }
}
