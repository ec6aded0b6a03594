import { fieldOfKind, imageKindOf, isImageField } from '../../image/kinds.js';
import type { ColumnValue } from '../../sample/label-column.js';
import { INDEX_COLUMNS } from '../../sample/label-column.js';
import { whyUnsafe } from '../../sample/sample-name.js';

/**
 * How the columns (or features) of other formats map to samples, by their names and contents. One column is the image
 * of a sample and is named by its kind (`jpg`); bytes of others are fields `NAME.EXTENSION`; single values are label
 * columns, and one of them is the class.
 */

/** Names of the class column, the most certain first, including those of common copies of MNIST and CIFAR. */
export const CLASS_NAMES = [
  'label',
  'labels',
  'cls',
  'class',
  'target',
  'y',
  'fine_label',
  'image/class/label',
  'class_id',
];
/** Names of the image column, the most certain first. */
export const IMAGE_NAMES = [
  'image',
  'img',
  'images',
  'image/encoded',
  'jpg',
  'jpeg',
  'png',
  'webp',
  'photo',
  'picture',
];
/** The column that is the class; undefined if no column has such a name. */
export function classColumnOf(names: Iterable<string>): string | undefined {
  return firstOf(CLASS_NAMES, names);
}

/** The image column, among the columns whose bytes are images. */
export function imageColumnOf(names: readonly string[]): string | undefined {
  return firstOf(IMAGE_NAMES, names) ?? names[0];
}

/** The field name for the bytes of a column: `jpg` for the image, `mask.png` for another image, else `NAME.EXTENSION`. */
export function fieldOfColumn(name: string, bytes: Uint8Array, isImage: boolean, extension = 'bin'): string {
  const kind = imageKindOf(bytes);
  const ending = kind === undefined ? extension : fieldOfKind(kind);
  if (isImage && kind !== undefined) return ending;
  const stem = safeName(name);
  const field = stem.endsWith(`.${ending}`) || stem === ending ? stem : `${stem}.${ending}`;
  // A field that is not the image of its sample must not look like one.
  return isImageField(field) ? `${field}.${ending}` : field;
}

/** The label column for a column: the index reserves some names. */
export function labelOfColumn(name: string): string {
  const label = safeName(name);
  return INDEX_COLUMNS.has(label) ? `${label}_` : label;
}

/**
 * A single value in the form of label columns: integers beyond the exact range of a number become text, and NaN becomes
 * a missing value.
 */
export function labelValue(value: number | bigint | string | boolean): ColumnValue {
  if (typeof value === 'bigint') return BigInt.asIntN(54, value) === value ? Number(value) : String(value);
  return Number.isNaN(value) ? null : value;
}

function safeName(name: string): string {
  const safe = name
    .replaceAll(/[/\\\0]/g, '_')
    .replace(/^\.+/, '')
    .toLowerCase();
  return safe === '' ? '_' : safe;
}

function firstOf(wanted: readonly string[], names: Iterable<string>): string | undefined {
  const there = new Set(names);
  return wanted.find((name) => there.has(name));
}

/** Checks a key from a column: it must be usable as a file name. Throws the error that `refuse` builds from the reason. */
export function keyOf(text: string, refuse: (why: string) => Error): string {
  const unsafe = text.includes('\ufffd') ? 'is not UTF-8' : whyUnsafe(text);
  if (unsafe !== null) throw refuse(unsafe);
  return text;
}
