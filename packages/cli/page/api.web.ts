/** The same calls as those of `api.ts`, answered in the page itself: for `view --static`. */
import { refusalOf, StaticView } from '../dist/view/static-view.js';
import type { MarkList, Query, Refusal } from '../src/view/protocol.js';

export const CAN = { mark: false, model: false } as const;

/** The dataset cannot be read, or an expression is invalid. The message is a sentence for the user. */
export class RequestRejectedError extends Error {
  readonly column: number | null;

  constructor({ message, column }: Refusal) {
    super(message);
    this.column = column ?? null;
  }
}

let opened: Promise<StaticView> | null = null;

/** Opens another dataset for the calls that follow. */
export function openUrl(url: string): void {
  opened = StaticView.open(url);
  // The first call reports it.
  opened.catch(() => undefined);
}

async function ask<T>(answer: (view: StaticView) => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    const got = await answer(await opened!);
    signal?.throwIfAborted();
    return got;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new RequestRejectedError(refusalOf(error));
  }
}

const NO_MARKS: MarkList = { marks: [], saved: null };

async function absent(): Promise<never> {
  throw new RequestRejectedError({
    message: 'This page only shows a dataset: "shardtool view" starts a server for more.',
  });
}

export const api = {
  dataset: (signal: AbortSignal) => ask((view) => view.info(), signal),
  readColumns: (signal: AbortSignal) => ask((view) => view.info(true), signal),
  rows: (query: Query, from: number, count: number, signal: AbortSignal) =>
    ask((view) => view.rows(query, from, count), signal),
  histogram: (query: Query, column: string, signal: AbortSignal) =>
    ask((view) => view.histogram(query, column), signal),
  sample: (index: number, signal: AbortSignal) => ask((view) => view.sample(index), signal),
  modelObjects: absent,
  marks: async () => NO_MARKS,
  mark: absent,
  saveMarks: absent,
};

/** Addresses of pictures, for {@link fetchPicture}. */
export const pictures = {
  thumbnail: (index: number, _size: number) => String(index),
  full: (index: number) => String(index),
  mask: () => '',
  model: () => '',
  modelMask: () => '',
};

/** Returns the image as it is stored. Throws {@link RequestRejectedError} if browsers cannot show it. */
export async function fetchPicture(address: string, signal: AbortSignal): Promise<Blob> {
  const { bytes, type } = await ask((view) => view.picture(Number(address)), signal);
  return new Blob([bytes], { type });
}
