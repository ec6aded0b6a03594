/** Requests to the server. Addresses are relative: the page is served from the folder whose name is the secret. */
import type {
  DatasetInfo,
  Histogram,
  Mark,
  MarkList,
  ModelObjects,
  Query,
  Refusal,
  Rows,
  SampleDetail,
} from '../src/view/protocol.js';
import type { ModelState } from './link/state.js';

/**
 * The server rejected a request. The message is a sentence for the user. `column` is a column of the text of `where`,
 * counted from 1.
 */
export class RequestRejectedError extends Error {
  readonly column: number | null;

  constructor({ message, column }: Refusal) {
    super(message);
    this.column = column ?? null;
  }
}

/** What the page can do. */
export const CAN = { mark: true, model: true } as const;

type Parameters = Readonly<Record<string, string | number>>;

function address(name: string, parameters: Parameters = {}): string {
  const search = new URLSearchParams(Object.entries(parameters).map(([key, value]) => [key, String(value)]));
  return `api/${name}?${search}`;
}

async function ask(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new RequestRejectedError({ message: 'The server does not answer: is "shardtool view" still running?' });
  }
  if (!response.ok) throw new RequestRejectedError((await response.json()) as Refusal);
  return response;
}

async function json<T>(url: string, init: RequestInit): Promise<T> {
  return (await (await ask(url, init)).json()) as T;
}

function post<T>(name: string, body: unknown): Promise<T> {
  const headers = { 'Content-Type': 'application/json' };
  return json<T>(`api/${name}`, { method: 'POST', headers, body: JSON.stringify(body) });
}

export const api = {
  dataset: (signal: AbortSignal) => json<DatasetInfo>(address('dataset'), { signal }),
  /** The server has read them. */
  readColumns: (signal: AbortSignal) => json<DatasetInfo>(address('dataset'), { signal }),
  rows: (query: Query, from: number, count: number, signal: AbortSignal) =>
    json<Rows>(address('rows', { q: JSON.stringify(query), from, count }), { signal }),
  histogram: (query: Query, column: string, signal: AbortSignal) =>
    json<Histogram>(address('histogram', { q: JSON.stringify(query), column }), { signal }),
  sample: (index: number, signal: AbortSignal) => json<SampleDetail>(address('sample', { index }), { signal }),
  modelObjects: (index: number, { transform, seed, epoch }: ModelState, signal: AbortSignal) =>
    json<ModelObjects>(address('model-objects', { index, transform, seed, epoch }), { signal }),
  marks: (signal: AbortSignal) => json<MarkList>(address('marks'), { signal }),
  mark: (index: number, mark: Mark | null) => post<MarkList>('mark', { index, mark }),
  saveMarks: (name: string) => post<MarkList>('overlay', { name }),
};

/** Addresses of pictures. {@link fetchPicture} fetches them, or an img element of fixed size. */
export const pictures = {
  thumbnail: (index: number, size: number) => address('thumbnail', { index, size }),
  full: (index: number) => address('picture', { index }),
  mask: (index: number, field: string) => address('mask', { index, field }),
  model: (index: number, { transform, seed, epoch }: ModelState) => address('model', { index, transform, seed, epoch }),
  modelMask: (index: number, field: string, { transform, seed, epoch }: ModelState) =>
    address('model-mask', { index, field, transform, seed, epoch }),
};

/** Throws {@link RequestRejectedError} if the image cannot be decoded. */
export async function fetchPicture(url: string, signal: AbortSignal): Promise<Blob> {
  return (await ask(url, { signal })).blob();
}
