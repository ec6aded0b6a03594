import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** What happens to a request instead of the server's response: no response, 503, or half of the response. */
type RelayFault = 'reset' | 'busy' | 'cut';

/** A proxy in front of a server that passes on requests and responses, unless `fault` says otherwise. */
export interface FaultyRelay {
  readonly endpoint: string;
  /** What happens to the `n`-th request, counted from 1. */
  fault: (n: number, request: http.IncomingMessage) => RelayFault | undefined;
  /** Number of requests so far. */
  requests: number;
  stop(): Promise<void>;
}

export async function faultyRelay(endpoint: string): Promise<FaultyRelay> {
  const { hostname: host, port } = new URL(endpoint);
  const agent = new http.Agent({ keepAlive: true });
  const server = http.createServer((request, response) => {
    const fault = self.fault(++self.requests, request);
    if (fault === 'reset') return void request.socket.resetAndDestroy();
    if (fault === 'busy') return void response.writeHead(503).end();
    // The Host header is unchanged, because the signature contains it.
    const { method, url: path, headers } = request;
    const asked = http.request({ agent, host, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      let left = fault === 'cut' ? Number(answer.headers['content-length'] ?? 2) >> 1 : Number.POSITIVE_INFINITY;
      answer.on('data', (bytes: Buffer) => {
        response.write(bytes.subarray(0, left));
        left -= bytes.length;
        if (left <= 0) request.socket.destroy();
      });
      answer.on('end', () => response.end());
    });
    asked.on('error', () => request.socket.destroy());
    response.on('close', () => asked.destroy());
    request.pipe(asked);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const self: FaultyRelay = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fault: () => undefined,
    requests: 0,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
  return self;
}
