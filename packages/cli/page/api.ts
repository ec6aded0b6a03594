/** What the server is asked. The page lies in the folder of its secret, so addresses are relative to it. */
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

/** The server said no, in a sentence. `column` counts from 1 in the text of `where`. */
export class RequestRejectedError extends Error {
  readonly column: number | null;

  constructor({ message, column }: Refusal) {
    super(message);
    this.column = column ?? null;
  }
}

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
  rows: (query: Query, from: number, count: number, signal: AbortSignal) =>
    json<Rows>(address('rows', { q: JSON.stringify(query), from, count }), { signal }),
  histogram: (query: Query, column: string, signal: AbortSignal) =>
    json<Histogram>(address('histogram', { q: JSON.stringify(query), column }), { signal }),
  sample: (number: number, signal: AbortSignal) => json<SampleDetail>(address('sample', { number }), { signal }),
  modelObjects: (number: number, { transform, seed, epoch }: ModelState, signal: AbortSignal) =>
    json<ModelObjects>(address('model-objects', { number, transform, seed, epoch }), { signal }),
  marks: (signal: AbortSignal) => json<MarkList>(address('marks'), { signal }),
  mark: (number: number, mark: Mark | null) => post<MarkList>('mark', { number, mark }),
  saveMarks: (name: string) => post<MarkList>('overlay', { name }),
};

/** Where pictures are; what they show is fetched by {@link fetchPicture}, or by an img that has a size of its own. */
export const pictures = {
  thumbnail: (number: number, size: number) => address('thumbnail', { number, size }),
  full: (number: number) => address('picture', { number }),
  mask: (number: number, field: string) => address('mask', { number, field }),
  model: (number: number, { transform, seed, epoch }: ModelState) =>
    address('model', { number, transform, seed, epoch }),
  modelMask: (number: number, field: string, { transform, seed, epoch }: ModelState) =>
    address('model-mask', { number, field, transform, seed, epoch }),
};

/** Throws {@link RequestRejectedError} where the image cannot be decoded. */
export async function fetchPicture(url: string, signal: AbortSignal): Promise<Blob> {
  return (await ask(url, { signal })).blob();
}
