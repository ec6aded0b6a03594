import { isAscii } from 'node:buffer';
import { decodeDelta, encodeDelta } from './delta.js';
import type { Cursor } from './varint.js';

/**
 * Strings as their lengths and then all their bytes. Apache Parquet format, Encodings.md, "Delta-length byte array
 * (DELTA_LENGTH_BYTE_ARRAY = 6)". The whole column is coded in one call, which is what makes it fast.
 */
export function encodeStrings(values: readonly string[]): Uint8Array {
  const joined = values.join('');
  const text = Buffer.from(joined);
  const lengths = new Float64Array(values.length);
  const ascii = text.length === joined.length;
  for (let i = 0; i < values.length; i++) lengths[i] = ascii ? values[i]!.length : Buffer.byteLength(values[i]!);
  const head = encodeDelta(lengths)!;
  return Buffer.concat([head, text]);
}

/** The inverse of {@link encodeStrings}. Throws RangeError if the bytes were not written by it. */
export function decodeStrings(bytes: Uint8Array, count: number): string[] {
  const cursor: Cursor = { bytes, at: 0 };
  const lengths = decodeDelta(cursor, count);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + cursor.at, bytes.length - cursor.at);
  checkLengths(lengths, text.length);
  const values = new Array<string>(count);
  const joined = isAscii(text) ? text.toString('latin1') : null;
  let at = 0;
  for (let i = 0; i < count; i++) {
    const end = at + lengths[i]!;
    values[i] = joined === null ? text.toString('utf8', at, end) : joined.slice(at, end);
    at = end;
  }
  return values;
}

function checkLengths(lengths: Float64Array, total: number): void {
  let sum = 0;
  for (const length of lengths) {
    if (length < 0) throw new RangeError('a string of negative length');
    sum += length;
  }
  if (sum !== total) throw new RangeError('strings of another length');
}
