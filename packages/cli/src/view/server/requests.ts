import { OptionError } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import type { TransformInput } from '@shardtool/reader';
import { z } from 'zod';
import type { ModelRequest } from '../model.js';
import type { Mark, Query } from '../protocol.js';

const MOST_TEXT = 10_000;
const text = z.string().max(MOST_TEXT);
const query = z.strictObject({
  where: text.default(''),
  ranges: z.record(text, z.tuple([z.number(), z.number()])).default({}),
  values: z.record(text, z.array(text).max(1000)).default({}),
  sort: z.strictObject({ column: text, descending: z.boolean() }).nullable().default(null),
});
const mark = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('wrong') }),
  z.strictObject({ kind: z.literal('exclude') }),
  z.strictObject({ kind: z.literal('class'), name: z.string().min(1).max(1000) }),
]);
const markRequest = z.strictObject({ index: z.number().int().min(0), mark: mark.nullable() });
const saveRequest = z.strictObject({ name: z.string().max(200) });

/** Parses `?q=` of an address: a query as JSON. */
export function queryOf(parameters: URLSearchParams): Query {
  return checked('q', query, jsonOf('q', parameters.get('q') ?? '{}'));
}

export function markOf(body: unknown): { readonly index: number; readonly mark: Mark | null } {
  return checked('mark', markRequest, body);
}

export function nameOf(body: unknown): string {
  return checked('overlay', saveRequest, body).name;
}

/**
 * Parses `?transform=` (the name of a preset, or a list as JSON), `seed` and `epoch`. Wrong steps are reported when
 * they are used.
 */
export function modelOf(parameters: URLSearchParams): ModelRequest {
  const given = parameters.get('transform') ?? 'train224';
  const transform = /^\s*\[/.test(given) ? jsonOf('transform', given) : given.trim();
  // A page must not read local files.
  if (typeof transform === 'string' && transform.endsWith('.json')) {
    throw new OptionError({}, 'The page takes the name of a transform or a list of steps, not a file.');
  }
  return {
    transform: transform as TransformInput,
    seed: wholeNumber(parameters, 'seed', 0),
    epoch: wholeNumber(parameters, 'epoch', 0),
  };
}

/**
 * Parses a whole number that is at least 0. Throws {@link OptionError} if it is invalid, or if it is missing and has no
 * default.
 */
export function wholeNumber(parameters: URLSearchParams, name: string, missing?: number): number {
  const given = parameters.get(name);
  if (given === null && missing !== undefined) return missing;
  const value = Number(given);
  if (given !== null && /^\d{1,15}$/.test(given)) return value;
  throw new OptionError({}, `${name} takes a whole number of 0 or more, not "${given ?? ''}".`);
}

function jsonOf(name: string, given: string): unknown {
  try {
    return JSON.parse(given);
  } catch (cause) {
    throw new OptionError({}, `${name} is not JSON (${(cause as Error).message}).`);
  }
}

function checked<T>(name: string, schema: z.ZodType<T>, given: unknown): T {
  return parseShape(schema, given, ({ where, what }) => {
    return new OptionError({}, `${where === '' ? name : `${name}.${where}`} is invalid: it ${what}.`);
  });
}
