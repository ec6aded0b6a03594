import dns from 'node:dns';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test, vi } from 'vitest';
import { exchange, type HttpRequest } from './exchange.js';
import { POST_WINDOW_MS, WINDOW_MS } from './least-rate.js';
import { TransientError } from './retry.js';

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

function ask(url: URL, method: HttpRequest['method'] = 'GET') {
  const counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  return exchange({ method, url, headers: {} }, { counts });
}

test('a redirect to a scheme other than http and https is rejected, and one that is not a URL is retried', async () => {
  for (const [location, name, why] of [
    ['file:///etc/passwd', 'FileError', 'it is redirected from http to file'],
    ['ftp://127.0.0.1/a', 'FileError', 'it is redirected from http to ftp'],
    ['http://[', 'Error', 'the server redirects to a URL that is not valid'],
  ] as const) {
    const url = await serve((_, answer) => answer.writeHead(302, { location }).end());
    await expect(ask(url)).rejects.toMatchObject({ name, message: expect.stringContaining(why) });
  }
});

test('an unknown host throws an error, and a host that has answered before is retried', async () => {
  const url = await serve((_, answer) => answer.writeHead(200, { connection: 'close' }).end('ok'));
  url.hostname = 'localhost';
  const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' });
  const lookup = vi.spyOn(dns, 'lookup');
  const fail = () =>
    lookup.mockImplementationOnce(((...args: unknown[]) => (args.at(-1) as (error: Error) => void)(unknown)) as never);
  try {
    fail();
    await expect(ask(url)).rejects.toMatchObject({
      name: 'FileError',
      message: expect.stringContaining('unknown host'),
    });
    expect((await ask(url)).status).toBe(200);
    fail();
    await expect(ask(url)).rejects.toThrow('the name of the host cannot be looked up now');
    await expect(ask(url)).resolves.toMatchObject({ status: 200 });
    fail();
    await expect(ask(url)).rejects.toThrow(TransientError);
  } finally {
    vi.restoreAllMocks();
  }
});

test('a response that is compressed in transit is not accepted as the file, and the error says so', async () => {
  const zipped = gzipSync('bytes of a file');
  const url = await serve((_, answer) => answer.writeHead(200, { 'content-encoding': 'gzip' }).end(zipped));
  const counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  const request = { method: 'GET', url, headers: {} } as const;
  const reason = 'the server compresses it (content-encoding gzip)';
  await expect(ask(url)).rejects.toThrow(reason);
  await expect(ask(url)).rejects.toThrow(TransientError);
  for (const bytes of [zipped.length - 1, zipped.length + 1])
    await expect(exchange(request, { counts, place: () => new Uint8Array(bytes) })).rejects.toThrow(reason);
});

test('a stored file that its server describes as compressed, such as a .tar.gz, is read unchanged', async () => {
  const zipped = gzipSync('bytes of a file');
  const url = await serve((_, answer) => answer.writeHead(200, { 'content-encoding': 'x-gzip' }).end(zipped));
  const target = new Uint8Array(zipped.length);
  const counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  expect((await exchange({ method: 'HEAD', url, headers: {} }, { counts })).status).toBe(200);
  await exchange({ method: 'GET', url, headers: {} }, { counts, place: () => target });
  expect(target).toEqual(new Uint8Array(zipped));
});

test('a GET without progress is aborted, and a POST may take minutes while the server sends white space', async () => {
  for (const [method, windowMs] of [
    ['GET', WINDOW_MS],
    ['POST', POST_WINDOW_MS],
  ] as const) {
    const answers: http.ServerResponse[] = [];
    const url = await serve((_, answer) => {
      answer.write(' ');
      answers.push(answer);
    });
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const slow = ask(url, method);
    while (vi.getTimerCount() === 0) await new Promise(setImmediate);
    vi.advanceTimersByTime(windowMs - 1);
    answers[0]!.end('done');
    expect((await slow).text).toBe(' done');
    const tooSlow = ask(url, method);
    while (vi.getTimerCount() === 0) await new Promise(setImmediate);
    vi.advanceTimersByTime(windowMs);
    await expect(tooSlow).rejects.toBeInstanceOf(TransientError);
    vi.useRealTimers();
  }
});
