import { ImageError, OptionError } from '@shardtool/base';
import {
  type ColumnType,
  type ColumnValue,
  fieldType,
  imageFieldOf,
  isImageField,
  jsonText,
  probeImage,
  readsBack,
  shownValue,
} from '@shardtool/format';
import { BadFileError } from '../errors.js';

/** What a field may be given as: bytes; text; a number for fields as `cls` and `count`; for `json` what JSON can say. */
export type NewValue =
  | Uint8Array
  | string
  | number
  | boolean
  | null
  | readonly unknown[]
  | { readonly [name: string]: unknown };

/**
 * A sample to be written: its key, and its fields by name. `jpg`, `png`, `seg.png` and the like take the encoded image, `cls` the
 * class (a number, or a name of the writer's `classes`), `json` a value, `txt` text, all others bytes. `columns` has values
 * for the writer's label columns.
 */
export interface NewSample {
  readonly key: string;
  readonly cls?: number | string | undefined;
  readonly columns?: Readonly<Record<string, ColumnValue>> | undefined;
  readonly [field: string]: NewValue | undefined;
}

/** What a writer's samples have in common. */
export interface SampleRules {
  /** Names of the classes in the order of their numbers; empty where classes are only numbers. */
  readonly classes: readonly string[];
  readonly columns: ReadonlyMap<string, ColumnType>;
  /** Images that claim more pixels are refused. */
  readonly maxPixels: number;
}

/** A sample as a shard stores it. */
export interface EncodedSample {
  readonly key: string;
  readonly fields: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  readonly columns: ReadonlyMap<string, ColumnValue>;
}

/**
 * Encodes the fields of a sample. Throws {@link OptionError} for names and values that no sample can have, and
 * {@link BadFileError} for an image that is none.
 */
export function encodeSample(sample: NewSample, rules: SampleRules): EncodedSample {
  if (typeof sample !== 'object' || sample === null) {
    const message = `A sample is an object with a key and fields, as { key: 'cat/1', jpg: bytes }, and not ${String(sample)}.`;
    throw new OptionError({}, message);
  }
  const { key, columns, ...values } = sample;
  checkKey(key);
  const fields = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name, bytes: encodeField(key, name, value, rules) }],
  );
  if (fields.length === 0) throw wrong(key, 'has no field; give it at least an image, as jpg: bytes');
  if (imageFieldOf(fields) === undefined) throw wrong(key, 'has no image; give it one, as jpg: bytes');
  return { key, fields, columns: checkColumns(key, columns ?? {}, rules.columns) };
}

/** Keys are names below the folder in which `unpack` puts them, and lines of lists. */
function checkKey(key: unknown): void {
  const parts = typeof key === 'string' ? key.split('/') : [''];
  const isName = parts.every((part) => part !== '' && part !== '.' && part !== '..') && !/[\0\\\n\r]/.test(String(key));
  if (isName && readsBack(key as string, 'jpg')) return;
  throw wrong(
    key,
    'has a key that is none: a key is text as "cat/0001", relative, on one line, and without a dot in its last name',
  );
}

function encodeField(key: string, name: string, value: NewValue, { classes, maxPixels }: SampleRules): Uint8Array {
  if (!readsBack(key, name)) {
    throw wrong(
      key,
      `has a field called ${JSON.stringify(name)}; a field is called as the end of a file, in lower case, as "jpg" or "seg.png"`,
    );
  }
  if (name === 'cls') return Buffer.from(String(classNumberOf(key, value, classes)));
  if (isImageField(name)) return checkImage(key, name, value, maxPixels);
  if (value instanceof Uint8Array) return value;
  switch (fieldType(name)) {
    case 'json':
      return encodeJson(key, name, value);
    case 'text':
      if (typeof value === 'string') return Buffer.from(value);
      throw wrong(key, `has no text in its field "${name}"`);
    case 'integer':
      if (Number.isSafeInteger(value)) return Buffer.from(String(value));
      throw wrong(key, `has no whole number in its field "${name}"`);
    default:
      throw wrong(key, `has no bytes in its field "${name}"; encode the value first, as a Uint8Array`);
  }
}

function encodeJson(key: string, name: string, value: NewValue): Uint8Array {
  try {
    const text = jsonText(value) as string | undefined;
    if (text !== undefined) return Buffer.from(text);
  } catch (cause) {
    throw wrong(key, `has a value in its field "${name}" that JSON cannot hold (${(cause as Error).message})`);
  }
  throw wrong(key, `has a value in its field "${name}" that JSON cannot hold`);
}

function checkImage(key: string, name: string, value: NewValue, maxPixels: number): Uint8Array {
  if (!(value instanceof Uint8Array))
    throw wrong(key, `has no bytes in its field "${name}"; give it the encoded image`);
  try {
    probeImage(value, undefined, maxPixels);
    return value;
  } catch (cause) {
    if (!(cause instanceof ImageError)) throw cause;
    throw new BadFileError(
      { key },
      `The field "${name}" of sample "${key}" is no image that can be packed: ${cause.message}`,
      { cause },
    );
  }
}

function classNumberOf(key: string, value: NewValue, classes: readonly string[]): number {
  const number = typeof value === 'string' ? classes.indexOf(value) : value;
  const count = classes.length === 0 ? 2 ** 31 : classes.length;
  if (Number.isInteger(number) && (number as number) >= 0 && (number as number) < count) return number as number;
  if (typeof value === 'string' && classes.length === 0) {
    throw wrong(
      key,
      `has the class "${value}", and the writer knows no names; give it the option "classes", a list of them`,
    );
  }
  throw wrong(key, `has the class ${shownValue(value)}, which is none of the ${count} that there are`);
}

function checkColumns(
  key: string,
  given: Readonly<Record<string, ColumnValue>>,
  types: ReadonlyMap<string, ColumnType>,
): ReadonlyMap<string, ColumnValue> {
  const values = new Map(Object.entries(given));
  for (const [name, value] of values) {
    const type = types.get(name);
    if (type === undefined) {
      throw wrong(
        key,
        `has a column "${name}" that the writer does not; name it with its type in the option "columns"`,
      );
    }
    // As in a table of labels: a missing value.
    if (type === 'double' && Number.isNaN(value)) values.set(name, null);
    else if (value !== null && !FITS[type](value))
      throw wrong(key, `has ${shownValue(value)} in the column "${name}" of type ${type}`);
  }
  return values;
}

const FITS: Readonly<Record<ColumnType, (value: ColumnValue) => boolean>> = {
  string: (value) => typeof value === 'string',
  int: (value) => Number.isSafeInteger(value),
  double: (value) => typeof value === 'number',
  bool: (value) => typeof value === 'boolean',
};

function wrong(key: unknown, what: string): OptionError {
  return new OptionError(
    { ...(typeof key === 'string' && { key }) },
    `The sample ${typeof key === 'string' ? JSON.stringify(key) : shownValue(key)} ${what}.`,
  );
}
