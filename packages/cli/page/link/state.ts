/**
 * What the page shows, as the part of its address after #. Every state has a link, and the Back button returns to the
 * previous state.
 */
import type { Query } from '../../src/view/protocol.js';

export interface ModelState {
  /** Name of a preset, or a list of steps as JSON. */
  readonly transform: string;
  readonly seed: number;
  readonly epoch: number;
}

export interface PageState {
  /** URL of the dataset, for the page of `view --static`. Null if the page has its own dataset. */
  readonly url: string | null;
  readonly query: Query;
  /** Histograms that are open in addition to the default ones. */
  readonly extra: readonly string[];
  /** Position in the list of the first visible sample. */
  readonly at: number;
  /** Index of the sample that is shown large. */
  readonly sample: number | null;
  readonly view: 'grid' | 'model';
  readonly model: ModelState;
  /** Size of a thumbnail, in pixels. */
  readonly size: number;
}

export const SIZES = [96, 160, 256] as const;
const DEFAULT: PageState = {
  url: null,
  query: { where: '', ranges: {}, values: {}, sort: null },
  extra: [],
  at: 0,
  sample: null,
  view: 'grid',
  model: { transform: 'train224', seed: 0, epoch: 0 },
  size: 160,
};

/** A link may also be only the URL of a dataset: `#https://example.org/shards`. */
const ONLY_URL = /^#((?:https?:|%2F|\.{0,2}\/).*)$/is;

export function stateOf(hash: string): PageState {
  const [, only] = ONLY_URL.exec(hash) ?? [];
  if (only !== undefined) return { ...DEFAULT, url: decoded(only) };
  const given = new URLSearchParams(hash.replace(/^#/, ''));
  // Without a prototype, so that __proto__ and constructor are ordinary names of columns.
  const ranges: Record<string, [number, number]> = Object.create(null);
  const values: Record<string, string[]> = Object.create(null);
  for (const [name, text] of given) {
    const [, kind, column] = /^(range|value)\.(.+)$/s.exec(name) ?? [];
    if (column === undefined) continue;
    if (kind === 'value') values[column] = [...(values[column] ?? []), text];
    else {
      const [from, to] = text.split('..').map(Number);
      if (Number.isFinite(from) && Number.isFinite(to)) ranges[column] = [from!, to!];
    }
  }
  const sort = given.get('sort');
  const size = wholeOf(given.get('size'));
  return {
    url: given.get('url'),
    query: {
      where: given.get('where') ?? '',
      ranges,
      values,
      sort: sort ? { column: sort.replace(/^-/, ''), descending: sort.startsWith('-') } : null,
    },
    extra: given.getAll('show'),
    at: wholeOf(given.get('at')) ?? 0,
    sample: wholeOf(given.get('sample')),
    view: given.get('view') === 'model' ? 'model' : 'grid',
    model: {
      transform: given.get('transform') ?? DEFAULT.model.transform,
      seed: wholeOf(given.get('seed')) ?? 0,
      epoch: wholeOf(given.get('epoch')) ?? 0,
    },
    size: SIZES.find((one) => one === size) ?? DEFAULT.size,
  };
}

/** The inverse of {@link stateOf}. Default values are omitted. */
export function hashOf({ url, query, extra, at, sample, view, model, size }: PageState): string {
  const made = new URLSearchParams();
  if (url !== null) made.set('url', url);
  if (query.where !== '') made.set('where', query.where);
  for (const [name, [from, to]] of Object.entries(query.ranges)) made.set(`range.${name}`, `${from}..${to}`);
  for (const [name, list] of Object.entries(query.values)) for (const one of list) made.append(`value.${name}`, one);
  if (query.sort !== null) made.set('sort', `${query.sort.descending ? '-' : ''}${query.sort.column}`);
  for (const column of extra) made.append('show', column);
  if (at !== 0) made.set('at', String(at));
  if (sample !== null) made.set('sample', String(sample));
  if (view !== 'grid') made.set('view', view);
  if (model.transform !== DEFAULT.model.transform) made.set('transform', model.transform);
  if (model.seed !== 0) made.set('seed', String(model.seed));
  if (model.epoch !== 0) made.set('epoch', String(model.epoch));
  if (size !== DEFAULT.size) made.set('size', String(size));
  return `#${made}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function wholeOf(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
