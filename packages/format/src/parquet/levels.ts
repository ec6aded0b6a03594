import { type Cursor, getVarint, putVarint } from './varint.js';

/**
 * Which rows of a column have a value: definition levels of an optional column, one bit per row. Apache Parquet format,
 * Encodings.md, "Run Length Encoding / Bit-Packing Hybrid (RLE = 3)": one run for the whole page, repeated if every row
 * has a value and bit-packed otherwise.
 */

/** `present[row]` is 1 or 0; null if every row has a value. */
export function encodeLevels(present: Uint8Array | null, rows: number): Uint8Array {
  if (present === null) {
    const run = new Uint8Array(8);
    const at = putVarint(run, 0, rows * 2);
    run[at] = 1;
    return run.subarray(0, at + 1);
  }
  const groups = Math.ceil(rows / 8);
  const packed = new Uint8Array(8 + groups);
  const at = putVarint(packed, 0, groups * 2 + 1);
  for (let row = 0; row < rows; row++) packed[at + (row >> 3)]! |= present[row]! << (row & 7);
  return packed.subarray(0, at + groups);
}

/** The inverse of {@link encodeLevels}. Throws RangeError if the bytes were not written by it. */
export function decodeLevels(bytes: Uint8Array, rows: number): Uint8Array | null {
  const cursor: Cursor = { bytes, at: 0 };
  const head = getVarint(cursor);
  if (head % 2 === 0) {
    if (head !== rows * 2 || bytes.length !== cursor.at + 1 || bytes[cursor.at] !== 1) {
      throw new RangeError('its definition levels are neither one run nor bit-packed');
    }
    return null;
  }
  const groups = Math.ceil(rows / 8);
  if ((head - 1) / 2 !== groups || bytes.length !== cursor.at + groups) {
    throw new RangeError('its definition levels have the wrong length');
  }
  const present = new Uint8Array(rows);
  for (let row = 0; row < rows; row++) present[row] = (bytes[cursor.at + (row >> 3)]! >> (row & 7)) & 1;
  return present;
}
