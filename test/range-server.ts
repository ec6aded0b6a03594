/** A plain file server with range requests; tests set the headers for pages of other sites. */
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';

export interface RangeServer {
  readonly url: string;
  /** Bodies that were sent, in order. */
  readonly sent: { readonly pathname: string; readonly bytes: number }[];
  latencyMs: number;
  /** Headers of every response. */
  headers: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript' };

/** The headers that docs/browser.md requires. */
export const OPEN_TO_ALL = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': 'Range',
  'Access-Control-Expose-Headers': 'Content-Range, ETag',
};

export async function rangeServer(folder: string): Promise<RangeServer> {
  const server = createServer((request, response) => {
    setTimeout(() => {
      for (const [name, value] of Object.entries(self.headers)) response.setHeader(name, value);
      if (request.method === 'OPTIONS') {
        response.writeHead(204).end();
        return;
      }
      const { pathname } = new URL(request.url!, 'http://host');
      const file = path.join(folder, decodeURIComponent(pathname));
      const found = statSync(file, { throwIfNoEntry: false });
      if (found === undefined || !found.isFile()) {
        response.writeHead(404).end();
        return;
      }
      const { size, mtimeMs } = found;
      const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
      const from = first === undefined ? 0 : first === '' ? Math.max(0, size - Number(last)) : Number(first);
      const to = first === '' || !last ? size : Math.min(size, Number(last) + 1);
      response.setHeader('ETag', `"${size}-${mtimeMs}"`);
      response.setHeader('Content-Type', TYPES[path.extname(file)] ?? 'application/octet-stream');
      response.setHeader('Content-Length', to - from);
      if (first !== undefined) response.setHeader('Content-Range', `bytes ${from}-${to - 1}/${size}`);
      response.writeHead(first === undefined ? 200 : 206);
      if (request.method === 'HEAD' || to === from) {
        response.end();
        return;
      }
      self.sent.push({ pathname, bytes: to - from });
      createReadStream(file, { start: from, end: to - 1 }).pipe(response);
    }, self.latencyMs);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const self: RangeServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent: [],
    latencyMs: 0,
    headers: {},
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
  return self;
}
