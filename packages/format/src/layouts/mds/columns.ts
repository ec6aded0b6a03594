import type { ColumnValue } from '../../sample/label-column.js';
import { labelValue } from '../columns/column-names.js';
import type { TableColumn } from '../columns/table.js';
import type { ColumnRole, ValueColumn } from '../columns/value-columns.js';

/** One column of an MDS shard: the length of its values (null if each value stores it), and their meaning. */
export interface MdsColumn extends ValueColumn {
  readonly bytes: number | null;
  /** Its role in a sample, if shardtool wrote the shard. */
  readonly of?: TableColumn;
}

const text = (bytes: DataView) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');

/** Encodings by name (mosaicml-streaming, base/format/mds/encodings.py). Numbers are little-endian. */
const ENCODINGS: ReadonlyMap<string, ColumnRole> = new Map<string, ColumnRole>([
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

/**
 * Like {@link roleOf}, for a column in a shard of shardtool that is not a field: text and JSON are single values there. Null if no
 * value has this encoding.
 */
export function valueRoleOf(encoding: string): ColumnRole | null {
  if (encoding === 'str') return { kind: 'value', value: text };
  if (encoding === 'json') return { kind: 'value', value: (bytes) => singleValue(JSON.parse(text(bytes))) };
  const role = roleOf(encoding);
  return role?.kind === 'value' ? role : null;
}

function singleValue(value: unknown): ColumnValue {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value;
  throw new RangeError('no single value');
}

/** The meaning of values with this encoding; null for an unknown one. `float16` and arrays stay raw bytes. */
export function roleOf(encoding: string): ColumnRole | null {
  const known = ENCODINGS.get(encoding);
  if (known !== undefined) return known;
  if (encoding === 'float16') return { kind: 'bytes', extension: 'float16' };
  return encoding === 'ndarray' || encoding.startsWith('ndarray:') ? { kind: 'bytes', extension: 'ndarray' } : null;
}
