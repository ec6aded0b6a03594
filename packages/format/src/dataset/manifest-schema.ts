import { OUTPUT_LAYOUTS } from '../layouts/registry.js';
import { COLUMN_TYPES } from '../sample/label-column.js';
import { either, mustBe, shownValue } from '../shape.js';
import type { Manifest } from './manifest.js';

/** The version of dataset.json that is written, and the newest version that can be read. */
export const MANIFEST_VERSION = 1;

/**
 * Returns the value if it has the right form, with only the names that are known. Otherwise throws an error about the
 * first part that is wrong, to which `path` then leads. Every command and loader begins with this check, and loading
 * zod would take most of the time for opening a dataset.
 */
type Check<Value> = (value: unknown, path: (string | number)[]) => Value;

function when<Value>(is: (value: unknown) => value is Value, what: string): Check<Value> {
  return (value) => {
    if (is(value)) return value;
    throw new Error(mustBe(what, value));
  };
}

function oneOf<const Value>(values: readonly Value[]): Check<Value> {
  return when((value): value is Value => values.includes(value as Value), either(values.map(shownValue)));
}

function matching(pattern: RegExp, rule: string): Check<string> {
  return (value, path) => {
    if (pattern.test(text(value, path))) return value as string;
    throw new Error(rule);
  };
}

function optional<Value>(check: Check<Value>): Check<Value | undefined> {
  return (value, path) => (value === undefined ? undefined : check(value, path));
}

function listOf<Value>(check: Check<Value>): Check<Value[]> {
  return (value, path) =>
    list(value, path).map((item, i) => {
      path.push(i);
      const checked = check(item, path);
      path.pop();
      return checked;
    });
}

function objectOf<Value extends object>(
  checks: { readonly [Name in keyof Value]-?: Check<Value[Name]> },
): Check<Value> {
  const entries = Object.entries<Check<unknown>>(checks);
  return (value, path) => {
    const given = object(value, path);
    const checked: Record<string, unknown> = {};
    for (const [name, check] of entries) {
      path.push(name);
      const one = check(given[name], path);
      if (one !== undefined) checked[name] = one;
      path.pop();
    }
    return checked as Value;
  };
}

const text = when((value) => typeof value === 'string', 'text');
const count = when(
  (value): value is number => Number.isSafeInteger(value) && (value as number) >= 0,
  'a whole number of at least 0',
);
const list = when((value): value is unknown[] => Array.isArray(value), 'a list');
const object = when(
  (value): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value),
  'an object',
);

/**
 * A file name, or a folder and a file name: never a path out of the dataset's folder. No segment begins with a dot or
 * has a backslash or colon, which have a meaning on Windows.
 */
const FILE_BELOW = /^[^./\\:\0][^/\\:\0]*(\/[^./\\:\0][^/\\:\0]*)?$/;

const MANIFEST = objectOf<Manifest>({
  version: oneOf([MANIFEST_VERSION]),
  format: oneOf(OUTPUT_LAYOUTS),
  identity: text,
  samples: count,
  bytes: count,
  madeFrom: optional(text),
  classes: listOf(objectOf({ name: text, samples: count })),
  fields: listOf(objectOf({ name: text, samples: count })),
  columns: listOf(objectOf({ name: text, type: oneOf(COLUMN_TYPES), most: optional(count) })),
  shards: listOf(
    objectOf({
      file: matching(FILE_BELOW, 'must be the name of a file inside the folder of the dataset'),
      bytes: count,
      samples: count,
      crc32: matching(/^[0-9a-f]{8}$/, 'must be eight hexadecimal digits'),
      maxSampleBytes: count,
    }),
  ),
});

/** Returns the manifest in the content of dataset.json, or a description of the first problem. */
export function checkManifest(json: unknown): Manifest | string {
  const path: (string | number)[] = [];
  try {
    return MANIFEST(json, path);
  } catch (error) {
    return `${path.join('.') || 'its content'} ${(error as Error).message}`;
  }
}
