import { type Cursor, getVarint, putVarint, unzigzag, zigzag } from './varint.js';

/**
 * Integers as bit-packed differences. Apache Parquet format, Encodings.md, "Delta encoding (DELTA_BINARY_PACKED = 5)":
 * a header (values per block, miniblocks per block, number of values, first value), then blocks of 128 differences: the
 * smallest of them, the bit widths of four miniblocks, and the miniblocks of 32 differences minus the smallest.
 */
const BLOCK = 128;
const MINIBLOCKS = 4;
const MINIBLOCK = BLOCK / MINIBLOCKS;

/** Larger differences use the PLAIN encoding, so that 32 bits hold every packed number. */
const MAX_DIFFERENCE = 2 ** 31 - 1;
const MAX_FIRST = 2 ** 52;
const MAX_HEADER_BYTES = 16;
const MAX_BLOCK_BYTES = 5 + MINIBLOCKS + BLOCK * 4;

/**
 * Returns null if a difference between neighbours does not fit 32 bits: such a column is stored plain. Both this
 * function and {@link decodeDelta} use one kind of array; with two kinds the same loops take twice the time.
 */
export function encodeDelta(values: Float64Array): Uint8Array | null {
  const first = values.length > 0 ? values[0]! : 0;
  if (Math.abs(first) > MAX_FIRST) return null;
  const target = new Uint8Array(MAX_HEADER_BYTES + Math.ceil(values.length / BLOCK) * MAX_BLOCK_BYTES);
  let at = putVarint(target, 0, BLOCK);
  at = putVarint(target, at, MINIBLOCKS);
  at = putVarint(target, at, values.length);
  at = putVarint(target, at, zigzag(first));
  const differences = new Float64Array(BLOCK);
  for (let start = 1; start < values.length; start += BLOCK) {
    const count = Math.min(BLOCK, values.length - start);
    const least = subtractNeighbours(values, start, count, differences);
    if (Number.isNaN(least)) return null;
    at = putBlock(target, at, differences, count, least);
  }
  return target.subarray(0, at);
}

/** Fills `differences` with a block's differences and returns the smallest; NaN if one is too large. */
function subtractNeighbours(values: Float64Array, start: number, count: number, differences: Float64Array): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < count; i++) {
    const difference = values[start + i]! - values[start + i - 1]!;
    if (Math.abs(difference) > MAX_DIFFERENCE) return Number.NaN;
    differences[i] = difference;
    if (difference < least) least = difference;
  }
  return least;
}

function putBlock(target: Uint8Array, at: number, differences: Float64Array, count: number, least: number): number {
  let next = putVarint(target, at, zigzag(least));
  const widths = next;
  next += MINIBLOCKS;
  const packed = new Uint32Array(MINIBLOCK);
  for (let m = 0; m * MINIBLOCK < count; m++) {
    let used = 0;
    for (let i = 0; i < MINIBLOCK; i++) {
      const n = m * MINIBLOCK + i;
      packed[i] = n < count ? differences[n]! - least : 0;
      used |= packed[i]!;
    }
    const width = 32 - Math.clz32(used);
    target[widths + m] = width;
    if (width > 0) next = packBits(target, next, packed, width);
  }
  return next;
}

/** Packs 32 numbers of `width` bits, lowest bit first, into `width` little-endian words. */
function packBits(target: Uint8Array, at: number, numbers: Uint32Array, width: number): number {
  let word = 0;
  let filled = 0;
  let next = at;
  for (let i = 0; i < MINIBLOCK; i++) {
    const number = numbers[i]!;
    word |= number << filled;
    filled += width;
    if (filled < 32) continue;
    target[next] = word;
    target[next + 1] = word >>> 8;
    target[next + 2] = word >>> 16;
    target[next + 3] = word >>> 24;
    next += 4;
    filled -= 32;
    word = filled > 0 ? number >>> (width - filled) : 0;
  }
  return next;
}

/**
 * The inverse of {@link encodeDelta}. Moves the cursor to the end of the numbers. Throws RangeError if there are not
 * `count` of them, or if the bytes were not written by encodeDelta.
 */
export function decodeDelta(cursor: Cursor, count: number): Float64Array {
  if (getVarint(cursor) !== BLOCK || getVarint(cursor) !== MINIBLOCKS) throw new RangeError('blocks of another size');
  if (getVarint(cursor) !== count) throw new RangeError('another number of values');
  const values = new Float64Array(count);
  const first = unzigzag(getVarint(cursor));
  if (count > 0) values[0] = first;
  for (let done = 1; done < values.length; done += BLOCK) {
    takeBlock(cursor, values, done, Math.min(BLOCK, values.length - done));
  }
  return values;
}

function takeBlock(cursor: Cursor, values: Float64Array, start: number, count: number): void {
  const { bytes } = cursor;
  const least = unzigzag(getVarint(cursor));
  const widths = cursor.at;
  cursor.at += MINIBLOCKS;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let value = values[start - 1]!;
  for (let m = 0; m * MINIBLOCK < count; m++) {
    const width = bytes[widths + m]!;
    const end = cursor.at + width * 4;
    if (!(width <= 32) || end > bytes.length) throw new RangeError('packed numbers are cut off');
    const mask = width === 32 ? -1 : (1 << width) - 1;
    const from = start + m * MINIBLOCK;
    const stop = Math.min(from + MINIBLOCK, start + count);
    let bit = 0;
    for (let i = from; i < stop; i++) {
      let packed = 0;
      if (width > 0) {
        const word = cursor.at + (bit >>> 5) * 4;
        const shift = bit & 31;
        packed = view.getUint32(word, true) >>> shift;
        if (shift + width > 32) packed |= view.getUint32(word + 4, true) << (32 - shift);
      }
      value += least + ((packed & mask) >>> 0);
      values[i] = value;
      bit += width;
    }
    cursor.at = end;
  }
}
