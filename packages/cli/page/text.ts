import { escapeControls } from '@shardtool/base/text';

const COUNT = new Intl.NumberFormat('en-US');
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/**
 * Escapes text from a dataset: control characters and characters that change the direction of text are written as in
 * JSON.
 */
export function shown(text: string): string {
  return escapeControls(text);
}

export function count(value: number): string {
  return COUNT.format(value);
}

/** Formats a size with three digits: 1.23 MB. */
export function bytes(value: number): string {
  const power = value < 1000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(value) / 3));
  return `${Number((value / 1000 ** power).toPrecision(3))} ${UNITS[power]}`;
}

/** Formats a value of a column with as many digits as are useful. */
export function value(column: string, given: number | string | boolean | null): string {
  if (given === null) return 'none';
  if (typeof given !== 'number') return shown(String(given));
  if (column === 'bytes') return bytes(given);
  return Number.isInteger(given) ? count(given) : String(Number(given.toPrecision(4)));
}
