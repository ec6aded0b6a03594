import { decodeDelta, encodeDelta } from './delta.js';
import { decodeStrings, encodeStrings } from './strings.js';

/** The values of one column, without rows that have no value. A bool is 1 or 0. */
export type ColumnValues =
  | { readonly type: 'string'; readonly values: readonly string[] }
  | { readonly type: 'int64'; readonly values: Float64Array }
  | { readonly type: 'double'; readonly values: Float64Array }
  | { readonly type: 'int32'; readonly values: Int32Array }
  | { readonly type: 'uint32'; readonly values: Uint32Array }
  | { readonly type: 'bool'; readonly values: Uint8Array };

export type ValueType = ColumnValues['type'];

/** The Apache Parquet encodings in an index. The reader accepts no others. */
export const VALUE_ENCODINGS = ['PLAIN', 'DELTA_BINARY_PACKED', 'DELTA_LENGTH_BYTE_ARRAY'] as const;
export type ValueEncoding = (typeof VALUE_ENCODINGS)[number];

export interface EncodedValues {
  readonly encoding: ValueEncoding;
  readonly bytes: Uint8Array;
}

/** 64-bit integers are passed as numbers, which must be safe integers: no BigInt is ever created. */
export function encodeValues(column: ColumnValues): EncodedValues {
  switch (column.type) {
    case 'string':
      return { encoding: 'DELTA_LENGTH_BYTE_ARRAY', bytes: encodeStrings(column.values) };
    case 'int64':
      return deltaOr(encodeInt64, column.values, column.values);
    case 'int32':
      return deltaOr(encodeInt32, column.values, Float64Array.from(column.values));
    case 'uint32':
      return { encoding: 'PLAIN', bytes: encodeInt32(column.values) };
    case 'double':
      return { encoding: 'PLAIN', bytes: encodeDouble(column.values) };
    case 'bool':
      return { encoding: 'PLAIN', bytes: encodeBool(column.values) };
  }
}

/** The inverse of {@link encodeValues}. Throws RangeError if the bytes were not written by it. */
export function decodeValues(type: ValueType, encoded: EncodedValues, count: number): ColumnValues {
  const { encoding, bytes } = encoded;
  const delta = encoding === 'DELTA_BINARY_PACKED';
  switch (type) {
    case 'string':
      return { type, values: decodeStrings(bytes, count) };
    case 'int64':
      return { type, values: delta ? decodeDelta({ bytes, at: 0 }, count) : decodeInt64(bytes, count) };
    case 'int32':
      return { type, values: delta ? decodeDelta32(bytes, count) : new Int32Array(plain(bytes, count, 4)) };
    case 'uint32':
      return { type, values: new Uint32Array(plain(bytes, count, 4)) };
    case 'double':
      return { type, values: new Float64Array(plain(bytes, count, 8)) };
    case 'bool':
      return { type, values: decodeBool(bytes, count) };
  }
}

function deltaOr<T>(encodePlain: (values: T) => Uint8Array, values: T, numbers: Float64Array): EncodedValues {
  const bytes = encodeDelta(numbers);
  if (bytes !== null) return { encoding: 'DELTA_BINARY_PACKED', bytes };
  return { encoding: 'PLAIN', bytes: encodePlain(values) };
}

function decodeDelta32(bytes: Uint8Array, count: number): Int32Array {
  return new Int32Array(decodeDelta({ bytes, at: 0 }, count));
}

/** Parquet is little-endian, and so are the typed arrays of every machine that Node 20 supports except s390x. */
function encodeInt32(values: Int32Array | Uint32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function encodeDouble(values: Float64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function encodeInt64(values: Float64Array): Uint8Array {
  const words = new Int32Array(values.length * 2);
  for (let i = 0; i < values.length; i++) {
    words[2 * i] = values[i]!;
    words[2 * i + 1] = Math.floor(values[i]! / 2 ** 32);
  }
  return new Uint8Array(words.buffer);
}

function decodeInt64(bytes: Uint8Array, count: number): Float64Array {
  const words = new Int32Array(plain(bytes, count, 8));
  const values = new Float64Array(count);
  for (let i = 0; i < count; i++) values[i] = words[2 * i + 1]! * 2 ** 32 + (words[2 * i]! >>> 0);
  return values;
}

/** Eight values per byte, the first in the lowest bit. */
function encodeBool(values: Uint8Array): Uint8Array {
  const packed = new Uint8Array(Math.ceil(values.length / 8));
  for (let i = 0; i < values.length; i++) packed[i >> 3]! |= values[i]! << (i & 7);
  return packed;
}

function decodeBool(bytes: Uint8Array, count: number): Uint8Array {
  if (bytes.length !== Math.ceil(count / 8)) throw new RangeError('another number of values');
  return Uint8Array.from({ length: count }, (_, i) => (bytes[i >> 3]! >> (i & 7)) & 1);
}

/** A copy of the bytes of `count` values, which may be unaligned. */
function plain(bytes: Uint8Array, count: number, width: number): ArrayBuffer {
  if (bytes.length !== count * width) throw new RangeError('another number of values');
  return new Uint8Array(bytes).buffer;
}
