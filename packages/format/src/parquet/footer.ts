import { totalOf } from '@shardtool/base';
import { deserializeTCompactProtocol } from 'hyparquet/src/thrift.js';
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js';
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js';
import { VALUE_ENCODINGS, type ValueEncoding, type ValueType } from './values.js';

/**
 * The structures of a Parquet file (apache/parquet-format, parquet.thrift; field_N is the field of that number). Only
 * the Thrift coding comes from hyparquet and hyparquet-writer: their footer code pulls in the whole format, which costs
 * each process and each worker thread about 50 ms at its start.
 */

/** One column of the file: a chunk of one page. */
export interface Chunk {
  readonly name: string;
  readonly type: ValueType;
  readonly nullable: boolean;
  readonly encoding: ValueEncoding;
  readonly compressed: boolean;
  /** Offset of its page header in the file. */
  readonly offset: number;
  /** Size with the page header, as stored and before compression. */
  readonly bytes: number;
  readonly plainBytes: number;
}

export interface Footer {
  readonly rows: number;
  readonly chunks: readonly Chunk[];
  readonly metadata: ReadonlyMap<string, string>;
}

export interface PageHeader {
  readonly rows: number;
  readonly nulls: number;
  readonly encoding: ValueEncoding;
  readonly levelBytes: number;
  /** Size of levels and values, as stored and before the values were compressed. */
  readonly bytes: number;
  readonly plainBytes: number;
  /** crc32 of levels and values as stored. */
  readonly crc32: number;
}

/** Numbers of the enumerations Type and ConvertedType. Together they determine our value type. */
const TYPE: Readonly<Record<ValueType, { readonly type: number; readonly converted?: number }>> = {
  string: { type: 6, converted: 0 },
  int64: { type: 2 },
  int32: { type: 1 },
  uint32: { type: 1, converted: 13 },
  double: { type: 5 },
  bool: { type: 0 },
};
const ENCODING: Readonly<Record<ValueEncoding, number>> = {
  PLAIN: 0,
  DELTA_BINARY_PACKED: 5,
  DELTA_LENGTH_BYTE_ARRAY: 6,
};
const REQUIRED = 0;
const OPTIONAL = 1;
const UNCOMPRESSED = 0;
const SNAPPY = 1;
const DATA_PAGE_V2 = 3;
const FORMAT_VERSION = 2;
const TYPE_ORDER = { field_1: {} };
/** The magic number at both ends of a file. */
export const MAGIC = Buffer.from('PAR1');

/** Encodes everything after the last column, including the length and the magic number. */
export function encodeFooter({ rows, chunks, metadata }: Footer): Uint8Array {
  const stored = totalOf(chunks, (chunk) => chunk.bytes);
  const plain = totalOf(chunks, (chunk) => chunk.plainBytes);
  const group = {
    field_1: chunks.map((chunk) => columnChunk(chunk, rows)),
    field_2: BigInt(plain),
    field_3: BigInt(rows),
    field_6: BigInt(stored),
  };
  const writer = new ByteWriter();
  serializeTCompactProtocol(writer, {
    field_1: FORMAT_VERSION,
    field_2: [{ field_4: 'root', field_5: chunks.length }, ...chunks.map(schemaElement)],
    field_3: BigInt(rows),
    field_4: [group],
    field_5: Array.from(metadata, ([key, value]) => ({ field_1: key, field_2: value })),
    field_6: 'shardtool',
    field_7: chunks.map(() => TYPE_ORDER),
  });
  writer.appendUint32(writer.offset);
  writer.appendBytes(MAGIC);
  return writer.getBytes();
}

function schemaElement({ name, type, nullable }: Chunk): object {
  return {
    field_1: TYPE[type].type,
    field_3: nullable ? OPTIONAL : REQUIRED,
    field_4: name,
    field_6: TYPE[type].converted,
    field_10: type === 'string' ? { field_1: {} } : undefined,
  };
}

function columnChunk(chunk: Chunk, rows: number): object {
  const metadata = {
    field_1: TYPE[chunk.type].type,
    field_2: [ENCODING[chunk.encoding]],
    field_3: [chunk.name],
    field_4: chunk.compressed ? SNAPPY : UNCOMPRESSED,
    field_5: BigInt(rows),
    field_6: BigInt(chunk.plainBytes),
    field_7: BigInt(chunk.bytes),
    field_9: BigInt(chunk.offset),
  };
  return { field_2: BigInt(chunk.offset), field_3: metadata };
}

/** The inverse of {@link encodeFooter}, for a whole file whose seal was verified. */
export function decodeFooter(file: Uint8Array): Footer {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const end = file.length - 8;
  const footer = deserializeTCompactProtocol({ view, offset: end - view.getUint32(end, true) });
  const elements: Thrift[] = footer.field_2.slice(1);
  const columns: Thrift[] = footer.field_4[0].field_1;
  return {
    rows: Number(footer.field_3),
    chunks: columns.map((column, i) => chunkOf(elements[i]!, column.field_3)),
    metadata: new Map(footer.field_5.map((entry: Thrift) => [text(entry.field_1), text(entry.field_2)])),
  };
}

/** A Thrift structure as decoded by hyparquet. */
type Thrift = ReturnType<typeof deserializeTCompactProtocol>;

function chunkOf(element: Thrift, metadata: Thrift): Chunk {
  return {
    name: text(element.field_4),
    type: typeOf(element),
    nullable: element.field_3 === OPTIONAL,
    encoding: encodingOf(metadata.field_2[0]),
    compressed: metadata.field_4 === SNAPPY,
    offset: Number(metadata.field_9),
    bytes: Number(metadata.field_7),
    plainBytes: Number(metadata.field_6),
  };
}

function typeOf(element: Thrift): ValueType {
  for (const [name, { type, converted }] of Object.entries(TYPE)) {
    if (element.field_1 === type && element.field_6 === converted) return name as ValueType;
  }
  throw new RangeError('a column is of another type');
}

function encodingOf(number: unknown): ValueEncoding {
  const encoding = VALUE_ENCODINGS.find((name) => ENCODING[name] === number);
  if (encoding === undefined) throw new RangeError('a column is of another encoding');
  return encoding;
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

export function encodePageHeader(page: PageHeader): Uint8Array {
  const writer = new ByteWriter();
  serializeTCompactProtocol(writer, {
    field_1: DATA_PAGE_V2,
    field_2: page.plainBytes,
    field_3: page.bytes,
    // Signed, like all Thrift integers.
    field_4: page.crc32 | 0,
    field_8: {
      field_1: page.rows,
      field_2: page.nulls,
      field_3: page.rows,
      field_4: ENCODING[page.encoding],
      field_5: page.levelBytes,
      field_6: 0,
    },
  });
  return writer.getBytes();
}

/** The inverse of {@link encodePageHeader}. `end` is the offset after it. */
export function decodePageHeader(bytes: Uint8Array): PageHeader & { readonly end: number } {
  const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
  const header = deserializeTCompactProtocol(reader);
  const page: Thrift = header.field_8;
  return {
    rows: page.field_1,
    nulls: page.field_2,
    encoding: encodingOf(page.field_4),
    levelBytes: page.field_5,
    bytes: header.field_3,
    plainBytes: header.field_2,
    crc32: header.field_4 >>> 0,
    end: reader.offset,
  };
}
