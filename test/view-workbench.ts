/** Servers of `shardtool view`, in this process. */
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { type OpenOptions, openDataset } from '@shardtool/reader';
import { afterAll } from 'vitest';
import { startServer, type ViewOptions, type ViewServer } from '#cli/view/server/server';

const stops: (() => Promise<unknown>)[] = [];

afterAll(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** A server of the dataset in a folder, which is stopped after the test file. */
export async function serve(
  location: string,
  { view = {}, ...options }: Partial<ViewOptions> & { readonly view?: OpenOptions } = {},
): Promise<ViewServer> {
  const dataset = await openDataset(location, view);
  const page = pathToFileURL(path.resolve('packages/cli/lib/page/'));
  const server = await startServer(dataset, {
    ...{ port: 0, location, overlay: view.overlay, page: new URL(`${page}/`), ...options },
  });
  stops.push(async () => {
    await server.close();
    await dataset.close();
  });
  return server;
}

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  /** The body as JSON. */
  json<T>(): T;
}

/** Sends a request like any program, with headers that a browser would not let a page set. */
export function ask(
  url: string,
  { method = 'GET', headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answered> {
  // Unchanged: a URL object would remove dots from the path.
  const [, port, path] = /^http:\/\/127\.0\.0\.1:(\d+)(\/.*)$/s.exec(url)!;
  return new Promise((resolve, reject) => {
    const asked = request({ hostname: '127.0.0.1', port, path, method, headers }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.once('end', () => {
        const all = Buffer.concat(parts);
        const { statusCode: status = 0, headers: given } = response;
        resolve({ status, headers: given, body: all, json: <T>() => JSON.parse(all.toString()) as T });
      });
    });
    asked.once('error', reject);
    asked.end(body);
  });
}

/** A port that is in use until the test file ends. */
export async function takenPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}
