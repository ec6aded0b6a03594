import type { ColumnValue } from '../../shard-index/label-column.js';
import { labelValue } from '../column-names.js';

/** One column of an MDS shard: how long its values are, null where each says it, and what they are. */
export interface MdsColumn {
  readonly name: string;
  readonly bytes: number | null;
  readonly role: MdsRole;
}

/** Bytes of a field with an extension; or a single value. */
export type MdsRole =
  | { readonly kind: 'bytes'; readonly extension: string }
  | { readonly kind: 'value'; value(bytes: DataView): ColumnValue };

const text = (bytes: DataView) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');

/** Encodings by name (mosaicml-streaming, base/format/mds/encodings.py); numbers are little-endian. */
const ENCODINGS: ReadonlyMap<string, MdsRole> = new Map<string, MdsRole>([
  ...(['bytes', 'jpeg', 'png'] as const).map((name) => [name, { kind: 'bytes', extension: 'bin' }] as const),
  ['str', { kind: 'bytes', extension: 'txt' }],
  ['json', { kind: 'bytes', extension: 'json' }],
  ['pil', { kind: 'bytes', extension: 'pil' }],
  ['jpeg_array', { kind: 'bytes', extension: 'jpegs' }],
  ['jpegarray', { kind: 'bytes', extension: 'jpegs' }],
  ...Object.entries({
    int: (bytes: DataView) => labelValue(bytes.getBigInt64(0, true)),
    uint8: (bytes: DataView) => bytes.getUint8(0),
    uint16: (bytes: DataView) => bytes.getUint16(0, true),
    uint32: (bytes: DataView) => bytes.getUint32(0, true),
    uint64: (bytes: DataView) => labelValue(bytes.getBigUint64(0, true)),
    int8: (bytes: DataView) => bytes.getInt8(0),
    int16: (bytes: DataView) => bytes.getInt16(0, true),
    int32: (bytes: DataView) => bytes.getInt32(0, true),
    int64: (bytes: DataView) => labelValue(bytes.getBigInt64(0, true)),
    float32: (bytes: DataView) => labelValue(bytes.getFloat32(0, true)),
    float64: (bytes: DataView) => labelValue(bytes.getFloat64(0, true)),
    str_int: (bytes: DataView) => labelValue(BigInt(text(bytes))),
    str_float: (bytes: DataView) => labelValue(Number(text(bytes))),
    str_decimal: text,
  }).map(([name, value]) => [name, { kind: 'value', value }] as const),
]);

/** What values of an encoding become; null for one that is not known. `float16` and arrays stay the bytes that they are. */
export function roleOf(encoding: string): MdsRole | null {
  const known = ENCODINGS.get(encoding);
  if (known !== undefined) return known;
  if (encoding === 'float16') return { kind: 'bytes', extension: 'float16' };
  return encoding === 'ndarray' || encoding.startsWith('ndarray:') ? { kind: 'bytes', extension: 'ndarray' } : null;
}
