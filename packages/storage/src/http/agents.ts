import { existsSync, readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
// All of undici takes three times as long to load, in each thread that reads.
import connect from 'undici/lib/api/api-connect.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import EnvHttpProxyAgent from 'undici/lib/dispatcher/env-http-proxy-agent.js';
import { FileError } from '../errors.js';

/** A server that does not take a connection in this time, or sends nothing for so long, is tried again. */
const CONNECT_MS = 5_000;
export const SILENCE_MS = 10_000;

/** Connections to one host. Whoever plans reads keeps far fewer under way. */
const CONNECTIONS = 256;

const agents = new Map<string, Dispatcher>();

/**
 * What this thread asks with: with `fresh`, on a connection of its own, as what is tried again is. HTTPS_PROXY, HTTP_PROXY and
 * NO_PROXY say where requests go, NODE_EXTRA_CA_CERTS or AWS_CA_BUNDLE whom they trust.
 */
export function agentFor({ protocol }: URL, fresh: boolean): Dispatcher {
  // Certificates take long to read, and http needs none.
  const proxy = process.env.http_proxy ?? process.env.HTTP_PROXY ?? '';
  const isSecure = protocol === 'https:' || /^https:/i.test(proxy);
  const kind = `${isSecure} ${fresh}`;
  let agent = agents.get(kind);
  if (agent === undefined) {
    agent = makeAgent(fresh ? 0 : 1, isSecure);
    agents.set(kind, agent);
  }
  return agent;
}

/** Whether some requests may go through a proxy. */
function hasProxy(): boolean {
  return ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'].some((name) => process.env[name]);
}

function makeAgent(pipelining: number, isSecure: boolean): Dispatcher {
  // A tunnel through a proxy is made by a method that dispatchers have only where all of undici is loaded.
  if (hasProxy()) Dispatcher.prototype.connect = connect;
  const tls = { timeout: CONNECT_MS, ...(isSecure && trusted()) };
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
