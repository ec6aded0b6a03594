import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';

/** What the server does with a request instead of responding normally. */
export type Fault =
  | 'reset'
  | 'cut'
  | 'stall'
  | 'wrong range'
  | 'ignored range'
  | 'no content-range'
  | 'drip'
  | 'too long'
  | 'flipped byte'
  | 'flipped end'
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string };

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  /** Number of earlier equal requests. */
  readonly before: number;
}

/** A web server for a folder, into which a test can inject faults. */
export interface FaultyServer {
  readonly url: string;
  /** All requests. */
  readonly asked: Asked[];
  /** Number of bytes sent in bodies. */
  readonly sent: number;
  /** Maximum number of concurrent requests so far. */
  readonly most: number;
  /** What happens to a request; undefined: a normal response, a promise: a later one. */
  fault: (asked: Asked) => Fault | undefined | Promise<undefined>;
  /** Delay before each response. */
  latencyMs: number;
  /** Stops listening and drops all connections; {@link start} listens on the same port again. */
  stop(): Promise<void>;
  start(): Promise<void>;
  clear(): void;
}

/** Whether the server is listening there now: another server may use the port. */
async function isListening(server: http.Server, port: number): Promise<boolean> {
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return false;
  }
}

/**
 * Serves the files below `folder` with range requests and ETags that depend on their content; with a key, over https.
 * `from`: uses the first free port from there on; default: any port.
 */
export async function faultyServer(
  folder: string,
  tls?: { readonly key: Buffer; readonly cert: Buffer },
  from = 0,
): Promise<FaultyServer> {
  const counts = new Map<string, number>();
  const etags = new Map<string, string>();
  let port = from;
  let underWay = 0;
  let server: http.Server;
  const self = {
    url: '',
    asked: [] as Asked[],
    sent: 0,
    most: 0,
    latencyMs: 0,
    fault: (() => undefined) as FaultyServer['fault'],
    async start() {
      const listener: http.RequestListener = (request, response) => void answer(request, response);
      server = tls === undefined ? http.createServer(listener) : https.createServer(tls, listener);
      while (!(await isListening(server, port))) {
        if (self.url !== '') throw new Error(`Port ${port} is another's now.`);
        port++;
      }
      port = (server.address() as AddressInfo).port;
      self.url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
    clear() {
      self.asked.length = 0;
      self.sent = 0;
      self.most = 0;
      counts.clear();
    },
  };

  async function answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers } = request;
    const name = `${method} ${url} ${headers.range ?? ''}`;
    const before = counts.get(name) ?? 0;
    counts.set(name, before + 1);
    const asked = { method, url, headers, before };
    self.asked.push(asked);
    underWay++;
    response.on('close', () => underWay--);
    self.most = Math.max(self.most, underWay);
    if (self.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, self.latencyMs));
    const fault = await self.fault(asked);
    if (typeof fault === 'object') {
      response.writeHead(fault.status, fault.headers).end(fault.body ?? '');
      return;
    }
    if (fault === 'stall') return;
    if (fault === 'reset') {
      request.socket.resetAndDestroy();
      return;
    }
    const file = path.join(folder, decodeURIComponent(new URL(url, 'http://host').pathname));
    if (!fs.existsSync(file) || !fs.statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    const { size } = fs.statSync(file);
    const etag = etagOf(file);
    if (headers['if-match'] !== undefined && headers['if-match'] !== etag) {
      response.writeHead(412).end();
      return;
    }
    const range = fault === 'ignored range' ? null : rangeOf(headers.range, size);
    if (range !== null && range.from >= range.to) {
      response.writeHead(416, { 'content-range': `bytes */${size}`, etag }).end();
      return;
    }
    let { from, to } = range ?? { from: 0, to: size };
    if (fault === 'wrong range') {
      from = Math.max(0, from - 1);
      to = Math.max(from + 1, to - 1);
    }
    const bytes = Buffer.alloc(to - from);
    const fd = fs.openSync(file, 'r');
    fs.readSync(fd, bytes, 0, bytes.length, from);
    fs.closeSync(fd);
    if (fault === 'flipped end') bytes[bytes.length - 30]! ^= 1;
    if (fault === 'flipped byte') bytes[Math.floor(bytes.length * 0.4)]! ^= 1;
    response.writeHead(range === null ? 200 : 206, {
      'content-length': fault === 'too long' ? bytes.length + 10 : bytes.length,
      etag,
      ...(range !== null && fault !== 'no content-range' && { 'content-range': `bytes ${from}-${to - 1}/${size}` }),
    });
    self.sent += method === 'HEAD' ? 0 : bytes.length;
    if (method === 'HEAD') response.end();
    else if (fault === 'cut') {
      response.write(bytes.subarray(0, bytes.length >> 1), () => request.socket.destroy());
    } else if (fault === 'drip') response.write(bytes.subarray(0, 1));
    else if (fault === 'too long') response.end(Buffer.concat([bytes, randomBytes(10)]));
    else response.end(bytes);
  }

  function etagOf(file: string): string {
    const { mtimeMs, size } = fs.statSync(file);
    const key = `${file} ${mtimeMs} ${size}`;
    let etag = etags.get(key);
    if (etag === undefined) {
      etag = `"${createHash('md5').update(fs.readFileSync(file)).digest('hex')}"`;
      etags.set(key, etag);
    }
    return etag;
  }

  await self.start();
  return self;
}

function rangeOf(header: string | undefined, size: number): { from: number; to: number } | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (match === null) return null;
  const [, first, last] = match;
  if (first === '') return { from: Math.max(0, size - Number(last)), to: size };
  return { from: Number(first), to: last === '' ? size : Math.min(size, Number(last) + 1) };
}
