import type { SchemaElement } from 'hyparquet';
import { DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { parseJson } from '../../sample/exact-json.js';

/**
 * Values that hyparquet rounds or rejects: decimals become products of floating-point numbers, timestamps lose
 * everything below a millisecond, JSON loses large integers, and an interval ends the reading of a file.
 */

/** Timestamps as text with all digits of their unit, so that the texts of a column sort by time. */
export const EXACT_PARSERS = {
  ...DEFAULT_PARSERS,
  timestampFromMicroseconds: (micros: bigint) => isoTime(micros, 6),
  timestampFromNanoseconds: (nanos: bigint) => isoTime(nanos, 9),
  jsonFromBytes: (bytes: Uint8Array | undefined) => bytes && parseJson(Buffer.from(bytes).toString()),
};

export type StoredValue = number | bigint | Uint8Array;

/** How to decode a column whose values hyparquet should return as stored. */
export interface StoredColumn {
  /** The column without the type that hyparquet would interpret. */
  readonly element: SchemaElement;
  readonly convert: (stored: StoredValue) => unknown;
}

/** Undefined if hyparquet decodes the column exactly. */
export function storedColumn(element: SchemaElement): StoredColumn | undefined {
  const { converted_type: converted, logical_type: logical, ...bare } = element;
  if (converted === 'DECIMAL' || logical?.type === 'DECIMAL') {
    const scale = element.scale ?? (logical?.type === 'DECIMAL' ? logical.scale : 0);
    return { element: bare, convert: (stored) => decimal(stored, scale) };
  }
  if (converted === 'INTERVAL') return { element: bare, convert: (stored) => interval(stored as Uint8Array) };
  if (converted === 'BSON') return { element: bare, convert: (stored) => stored };
  return undefined;
}

/** How many decimal digits a number represents exactly. */
const EXACT_DIGITS = 15;

/** Integers as a bigint, others as a number, or as text if a number has too few digits. */
function decimal(stored: StoredValue, scale: number): bigint | number | string {
  const unscaled = stored instanceof Uint8Array ? bigEndian(stored) : BigInt(stored);
  if (scale === 0) return unscaled;
  const sign = unscaled < 0n ? '-' : '';
  const digits = String(unscaled)
    .replace('-', '')
    .padStart(scale + 1, '0');
  const text = `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
  const significant = digits.replace(/^0+/, '').replace(/0+$/, '').length;
  return significant <= EXACT_DIGITS ? Number(text) : text;
}

function bigEndian(bytes: Uint8Array): bigint {
  return bytes.length === 0 ? 0n : BigInt.asIntN(8 * bytes.length, BigInt(`0x${Buffer.from(bytes).toString('hex')}`));
}

/** Months, days and milliseconds in the notation of ISO 8601. */
function interval(stored: Uint8Array): string {
  const [months, days, milliseconds] = [0, 4, 8].map((at) => Buffer.from(stored).readUInt32LE(at));
  return `P${months}M${days}DT${milliseconds! / 1000}S`;
}

/** Null for a time out of JavaScript's range, such as an infinite one. */
function isoTime(value: bigint, digits: number): string | null {
  const unit = 10n ** BigInt(digits);
  const below = ((value % unit) + unit) % unit;
  const seconds = new Date(Number((value - below) / unit) * 1000);
  if (Number.isNaN(seconds.getTime())) return null;
  return `${seconds.toISOString().slice(0, -'.000Z'.length)}.${String(below).padStart(digits, '0')}Z`;
}
