/** The server of the page: for one dataset and one user, on this machine only. */
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FileError, reasonOf, ShardtoolError, toMessage } from '@shardtool/base';
import { type AnnotationOptions, type Dataset, WhereError } from '@shardtool/reader';
import { Marks } from '../marks.js';
import { ModelView } from '../model.js';
import { checkGivenAnnotations } from '../objects.js';
import { thumbnailOf } from '../pictures/pictures.js';
import { Thumbnails, Withdrawn } from '../pictures/thumbnails.js';
import type { Refusal } from '../protocol.js';
import { Queries } from '../queries.js';
import { whereRows } from '../query.js';
import { readSampleTable } from '../sample-table.js';
import { admitted, newSecret, SAFE_HEADERS } from './guard.js';
import { ROUTES, type Viewed } from './routes.js';

export interface ViewOptions {
  /** With 0, the system chooses a free port. */
  readonly port: number;
  /** Location of the dataset as it was given. Overlays are written there. */
  readonly location: string;
  /** The overlay that the dataset was opened with. */
  readonly overlay?: string | undefined;
  readonly annotations?: AnnotationOptions | undefined;
  /** Folder of the built page. */
  readonly page: URL;
  readonly onProgress?: (done: number) => void;
}

export interface ViewServer {
  /** URL of the page with the secret. Anyone who has it can see the dataset. */
  readonly address: string;
  readonly marks: Marks;
  readonly thumbnails: Thumbnails;
  /** Ends connections. The dataset stays open. */
  close(): Promise<void>;
}

/** Files of the page, by the path after the secret. */
const PAGE = {
  '': { file: 'index.html', type: 'text/html; charset=utf-8' },
  'app.js': { file: 'app.js', type: 'text/javascript; charset=utf-8' },
  'style.css': { file: 'style.css', type: 'text/css; charset=utf-8' },
  'icon.svg': { file: 'icon.svg', type: 'image/svg+xml' },
} as const;
const MOST_BODY = 1 << 20;

/** Reads all indexes, then listens on 127.0.0.1. Throws {@link FileError} if the port is taken. */
export async function startServer(dataset: Dataset, options: ViewOptions): Promise<ViewServer> {
  const table = await readSampleTable(dataset, options.onProgress);
  checkGivenAnnotations(options.annotations, [...dataset.fields, ...table.columns.keys(), ...table.omitted]);
  const marks = new Marks({ location: options.location, overlay: options.overlay });
  const thumbnails = new Thumbnails((number, size) => thumbnailOf(dataset, number, size));
  const model = new ModelView(dataset, options.annotations);
  const viewed: Viewed = {
    dataset,
    table,
    marks,
    thumbnails,
    model,
    overlay: options.overlay ?? null,
    annotations: options.annotations,
    queries: new Queries((text) => whereRows(dataset, text), table, marks),
  };
  const secret = newSecret();
  let port = options.port;
  const server = createServer((request, response) => {
    const rest = admitted(request, { secret, port });
    // Without the secret, a client does not learn what exists.
    if (rest === null)
      return refuse(response, 403, { message: 'This address is wrong: use the one that was printed.' });
    answer(request, response, rest, viewed, options.page).catch((error: unknown) => refuseBy(response, error));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(portError(options.port, cause)));
    server.listen(options.port, '127.0.0.1', resolve);
  });
  port = (server.address() as AddressInfo).port;
  const prepared = viewed.queries.prepare();
  return {
    address: `http://127.0.0.1:${port}/${secret}/`,
    marks,
    thumbnails,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await Promise.all([closed, prepared]);
      await model.close();
    },
  };
}

function portError(port: number, cause: Error): FileError {
  return new FileError(
    {},
    `Port ${port} of 127.0.0.1 cannot be used: ${reasonOf(cause)}; choose another port with --port.`,
    {
      cause,
    },
  );
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  rest: string,
  viewed: Viewed,
  page: URL,
): Promise<void> {
  const [name = '', search] = rest.split('?', 2);
  if (request.method === 'GET' && Object.hasOwn(PAGE, name)) {
    const { file, type } = PAGE[name as keyof typeof PAGE];
    return send(response, 200, type, await readFile(new URL(file, page)));
  }
  const route = `${request.method} ${name}`;
  if (!Object.hasOwn(ROUTES, route)) return refuse(response, 404, { message: `There is nothing at "${name}".` });
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const body = request.method === 'POST' ? await jsonBody(request) : null;
  const made = await ROUTES[route]!(viewed, {
    parameters: new URLSearchParams(search ?? ''),
    body,
    signal: gone.signal,
  });
  if ('picture' in made) send(response, 200, made.picture.type, made.picture.bytes);
  else send(response, 200, 'application/json', JSON.stringify(made.json));
}

/** A form of another site can send text, but only a script that the browser admits can send JSON. */
async function jsonBody(request: IncomingMessage): Promise<unknown> {
  if (request.headers['content-type'] !== 'application/json') throw new BodyError('a body has to be application/json');
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    // A body that is too long is read to its end and discarded, because otherwise the answer would not arrive.
    if (bytes <= MOST_BODY) parts.push(part);
  }
  if (bytes > MOST_BODY) throw new BodyError('the body is too long');
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw new BodyError('the body is not JSON');
  }
}

class BodyError extends Error {}

function send(response: ServerResponse, status: number, type: string, content: string | Uint8Array): void {
  if (response.destroyed) return;
  const body = typeof content === 'string' ? Buffer.from(content) : content;
  response.writeHead(status, { ...SAFE_HEADERS, 'Content-Type': type, 'Content-Length': body.length }).end(body);
}

function refuse(response: ServerResponse, status: number, refusal: Refusal): void {
  send(response, status, 'application/json', JSON.stringify(refusal));
}

function refuseBy(response: ServerResponse, error: unknown): void {
  if (error instanceof Withdrawn || response.destroyed) {
    response.destroy();
    return;
  }
  const { message } = error instanceof Error ? error : new Error(String(error));
  const said = toMessage(message);
  const isForeseen = error instanceof ShardtoolError || error instanceof BodyError;
  const refusal = error instanceof WhereError ? { message: said, column: error.column } : { message: said };
  refuse(response, isForeseen ? 400 : 500, refusal);
}
