import { fieldOfKind, imageKindOf, isImageField } from '../image/kinds.js';
import { whyUnsafe } from '../sample/sample-name.js';
import { INDEX_COLUMNS } from '../shard-index/columns.js';
import type { ColumnValue } from '../shard-index/label-column.js';

/**
 * What the columns (or features) of other software's formats become here, by their names and what is in them. One
 * column is the image of a sample and is called by its kind (`jpg`); bytes of others are fields `NAME.EXTENSION`, single
 * values are label columns, and one of them is the class.
 */

/** Names of the class, the surest first; those of MNIST's and CIFAR's copies among them. */
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
/** Names of the image, the surest first. */
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
/** The column that is the class; undefined where no name says it. */
export function classColumnOf(names: Iterable<string>): string | undefined {
  return firstOf(CLASS_NAMES, names);
}

/** The column that is the image among those whose bytes are images. */
export function imageColumnOf(names: readonly string[]): string | undefined {
  return firstOf(IMAGE_NAMES, names) ?? names[0];
}

/** The field that bytes of a column are: `jpg` for the image, `mask.png` for another one, `NAME.EXTENSION` else. */
export function fieldOfColumn(name: string, bytes: Uint8Array, isImage: boolean, extension = 'bin'): string {
  const kind = imageKindOf(bytes);
  const ending = kind === undefined ? extension : fieldOfKind(kind);
  if (isImage && kind !== undefined) return ending;
  const stem = safeName(name);
  const field = stem.endsWith(`.${ending}`) || stem === ending ? stem : `${stem}.${ending}`;
  // What is no image of its sample must not look like one.
  return isImageField(field) ? `${field}.${ending}` : field;
}

/** The label column for values of a column: the index has names of its own. */
export function labelOfColumn(name: string): string {
  const label = safeName(name);
  return INDEX_COLUMNS.has(label) ? `${label}_` : label;
}

/** A single value as label columns hold it: integers beyond what a number holds exactly are text, and NaN is a missing value. */
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

/** A key that a column gives: one that can be the name of a file. Throws what `refuse` makes of the reason. */
export function keyOf(text: string, refuse: (why: string) => Error): string {
  const unsafe = text.includes('\ufffd') ? 'is not UTF-8' : whyUnsafe(text);
  if (unsafe !== null) throw refuse(unsafe);
  return text;
}
