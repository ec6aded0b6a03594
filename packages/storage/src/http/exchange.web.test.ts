import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { exchange } from './exchange.web.js';

const servers: http.Server[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(answer: http.RequestListener): Promise<URL> {
  const server = http.createServer(answer);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/a`);
}

function ask(url: URL, fresh: boolean) {
  const counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  return exchange({ method: 'GET', url, headers: {} }, { counts, fresh });
}

test('a request that a server never answers ends with an error that is retried', async () => {
  const url = await serve(() => undefined);
  const asked = once(servers[0]!, 'request');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const failure = expect(ask(url, false)).rejects.toMatchObject({
    name: 'Error',
    message: 'no answer within 60 seconds',
  });
  await asked;
  vi.advanceTimersByTime(60_000);
  await failure;
});

test('a connection that is lost once is retried, before the server is said not to allow the page to read', async () => {
  const url = await serve((request, answer) => {
    if (request.method === 'HEAD') answer.end();
    else request.socket.destroy();
  });
  await expect(ask(url, false)).rejects.toThrow(/^the connection was lost, or the browser rejects the answer/);
  await expect(ask(url, true)).rejects.toThrow(/does not allow this page to read it \(CORS\)/);
});
