import { readFileSync } from 'node:fs';
import { type Dispatcher, EnvHttpProxyAgent } from 'undici';

/** A server that does not take a connection in this time, or sends nothing for so long, is tried again. */
const CONNECT_MS = 5_000;
const SILENCE_MS = 10_000;

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
  const bundle = process.env.AWS_CA_BUNDLE;
  const tls = bundle === undefined ? {} : { ca: readFileSync(bundle) };
  return new EnvHttpProxyAgent({
    connections: CONNECTIONS,
    pipelining,
    connect: { timeout: CONNECT_MS, ...tls },
    requestTls: { timeout: CONNECT_MS, ...tls },
    headersTimeout: SILENCE_MS,
    bodyTimeout: SILENCE_MS,
    keepAliveTimeout: 15_000,
  });
}
