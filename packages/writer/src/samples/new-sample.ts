import { didYouMean, ImageError, OptionError, option, type Sentence, sentence } from '@shardtool/base';
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

/** Values of fields: bytes, text, a number for fields such as `count`, or for `json` any value that JSON can represent. */
export type NewValue =
  | Uint8Array
  | string
  | number
  | boolean
  | null
  | readonly unknown[]
  | { readonly [name: string]: unknown };

/**
 * A sample to write: its key, its label, and its fields by name. `label` is the class: a number, or a name in the
 * writer's `classes`. `jpg`, `png`, `seg.png` and similar fields take the encoded image, `json` a value, `txt` text,
 * and all others bytes. `columns` has values for the writer's label columns.
 */
export interface NewSample {
  readonly key: string;
  readonly label?: number | string | undefined;
  readonly columns?: Readonly<Record<string, ColumnValue>> | undefined;
  readonly [field: string]: NewValue | undefined;
}

/** Rules for all samples of a writer. */
export interface SampleRules {
  /** Class names in the order of their numbers; empty if classes are only numbers. */
  readonly classes: readonly string[];
  readonly columns: ReadonlyMap<string, ColumnType>;
  /** Images with more pixels according to their header are rejected. */
  readonly maxPixels: number;
  /** The field that every sample has instead of an image; null if every sample has an image. */
  readonly primary: string | null;
}

/** A sample as a shard stores it. */
export interface EncodedSample {
  readonly key: string;
  readonly fields: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  readonly columns: ReadonlyMap<string, ColumnValue>;
}

/**
 * Encodes the fields of a sample. Throws {@link OptionError} for invalid names and values, and {@link BadFileError} for
 * an invalid image.
 */
export function encodeSample(sample: NewSample, rules: SampleRules): EncodedSample {
  if (typeof sample !== 'object' || sample === null) {
    const message = `A sample must be an object with a key and fields, such as { key: 'cat/1', jpg: bytes }, not ${String(sample)}.`;
    throw new OptionError({}, message);
  }
  const { key, label, columns, ...values } = sample;
  checkKey(key);
  const fields = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name, bytes: encodeField(key, name, value, rules) }],
  );
  if (label !== undefined) fields.push({ name: 'cls', bytes: encodeLabel(key, label, rules.classes) });
  const { primary } = rules;
  if (primary !== null && !fields.some(({ name }) => name === primary))
    throw wrong(key, sentence`has no field "${primary}", which every sample has by the option ${option('primary')}`);
  if (primary === null && imageFieldOf(fields) === undefined) {
    const what = fields.length === 0 ? 'has no field; add at least an image' : 'has no image; add one';
    throw wrong(
      key,
      sentence`${what}, such as jpg: bytes, or set the option ${option('primary')} for samples without images`,
    );
  }
  return { key, fields, columns: checkColumns(key, columns ?? {}, rules.columns) };
}

/** Keys become names below the output folder of `unpack`, and lines in lists of keys. */
function checkKey(key: unknown): void {
  const parts = typeof key === 'string' ? key.split('/') : [''];
  const isName = parts.every((part) => part !== '' && part !== '.' && part !== '..') && !/[\0\\\n\r]/.test(String(key));
  if (isName && readsBack(key as string, 'jpg')) return;
  throw wrong(
    key,
    'has an invalid key: a key is text such as "cat/0001", a relative path on one line without a dot in its last part',
  );
}

function encodeField(key: string, name: string, value: NewValue, { maxPixels }: SampleRules): Uint8Array {
  if (!readsBack(key, name)) {
    throw wrong(
      key,
      `has a field called ${JSON.stringify(name)}; a field name is a file extension in lower case, such as "jpg" or "seg.png"`,
    );
  }
  if (name === 'cls') throw wrong(key, 'has a field called "cls"; give the class as "label"');
  if (isImageField(name)) return checkImage(key, name, value, maxPixels);
  if (value instanceof Uint8Array) return value;
  switch (fieldType(name)) {
    case 'json':
      return encodeJson(key, name, value);
    case 'text':
      if (typeof value === 'string') return Buffer.from(value);
      throw wrong(key, `must have text in its field "${name}"`);
    case 'integer':
      if (Number.isSafeInteger(value)) return Buffer.from(String(value));
      throw wrong(key, `must have a whole number in its field "${name}"`);
    default:
      throw wrong(key, `has no bytes in its field "${name}"; encode the value first`);
  }
}

function encodeJson(key: string, name: string, value: NewValue): Uint8Array {
  try {
    const text = jsonText(value) as string | undefined;
    if (text !== undefined) return Buffer.from(text);
  } catch (cause) {
    throw wrong(key, `has a value in its field "${name}" that JSON cannot represent (${(cause as Error).message})`);
  }
  throw wrong(key, `has a value in its field "${name}" that JSON cannot represent`);
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
      `The field "${name}" of sample "${key}" is not an image that can be packed: ${cause.message}`,
      { cause },
    );
  }
}

/** Encodes the number of a class as the field `cls`, in which shards store it. */
function encodeLabel(key: string, label: number | string, classes: readonly string[]): Uint8Array {
  const number = typeof label === 'string' ? classes.indexOf(label) : label;
  const count = classes.length === 0 ? 2 ** 31 : classes.length;
  if (Number.isInteger(number) && number >= 0 && number < count) return Buffer.from(String(number));
  if (typeof label === 'string' && classes.length === 0) {
    throw wrong(
      key,
      sentence`has the label "${label}", but the writer has no class names; set the option ${option('classes')} to a list of them`,
    );
  }
  const hint = typeof label === 'string' ? didYouMean(label, classes).replace(/^; (.*)$/, ' ($1)') : '';
  throw wrong(key, `has the label ${shownValue(label)}, which is not one of the ${count} classes of the writer${hint}`);
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
        sentence`has a column "${name}" that the writer does not have; add it with its type to the option ${option('columns')}`,
      );
    }
    // As in a labels file, this is a missing value.
    if (type === 'double' && Number.isNaN(value)) values.set(name, null);
    else if (value !== null && !FITS[type](value))
      throw wrong(key, `has the value ${shownValue(value)} in the column "${name}", whose type is ${type}`);
  }
  return values;
}

const FITS: Readonly<Record<ColumnType, (value: ColumnValue) => boolean>> = {
  string: (value) => typeof value === 'string',
  int: (value) => Number.isSafeInteger(value),
  double: (value) => typeof value === 'number',
  bool: (value) => typeof value === 'boolean',
};

function wrong(key: unknown, what: string | Sentence): OptionError {
  return new OptionError(
    { ...(typeof key === 'string' && { key }) },
    sentence`The sample ${typeof key === 'string' ? JSON.stringify(key) : shownValue(key)} ${what}.`,
  );
}
