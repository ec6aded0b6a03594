import { totalOf } from '@shardtool/base';
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js';
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js';
import { MAGIC } from '../../parquet/footer.js';
import { encodeTable, TABLE_MARK, type Table, type TableColumn } from '../columns/table.js';

/**
 * The self-description of a file of shardtool: its columns as Arrow and Hugging Face datasets write them, and their
 * positions. Apache Parquet format, parquet.thrift; field_N is the field of that number.
 */

/** One column of values in the file: a column of the table, or one half of an image. */
export interface Leaf {
  /** The index of its column in the table. */
  readonly column: number;
  readonly path: readonly string[];
  readonly type: 'bytes' | 'text' | 'int64' | 'double' | 'bool';
  /** The level of a row that has a value. 0 is a row without one; for an image, 1 is a row with the image but no path. */
  readonly maxLevel: number;
}

/** Where the values of a leaf are in a row group. */
export interface LeafChunk {
  /** Offset of its first page. */
  readonly offset: number;
  /** Size with the page headers. */
  readonly bytes: number;
}

export interface WrittenGroup {
  readonly rows: number;
  /** One for each leaf. */
  readonly chunks: readonly LeafChunk[];
  /** Total size of all payloads. */
  readonly payloadBytes: number;
}

/** Numbers of the enumerations Type, ConvertedType, FieldRepetitionType, Encoding and PageType. */
const TYPE = { bytes: 6, text: 6, int64: 2, double: 5, bool: 0 } as const;
const UTF8 = 0;
const OPTIONAL = 1;
const PLAIN = 0;
const RLE = 3;
const DATA_PAGE = 0;
const UNCOMPRESSED = 0;

/** The columns of values, in the order of the file. An image is a struct of bytes and path; the path is always absent. */
export function leavesOf({ columns }: Table): Leaf[] {
  return columns.flatMap(({ name, holds }, column): Leaf[] => {
    if (holds !== 'image') return [{ column, path: [name], type: typeOf(holds), maxLevel: 1 }];
    return [
      { column, path: [name, 'bytes'], type: 'bytes', maxLevel: 2 },
      { column, path: [name, 'path'], type: 'text', maxLevel: 2 },
    ];
  });
}

function typeOf(holds: TableColumn['holds']): Leaf['type'] {
  if (holds === 'bytes' || holds === 'double' || holds === 'bool') return holds;
  return holds === 'class' || holds === 'int' ? 'int64' : 'text';
}

/** The features in the form of Hugging Face datasets (datasets, features/features.py: `Features.to_dict`). */
function featuresOf({ columns, classes }: Table): object {
  const value = (dtype: string) => ({ dtype, _type: 'Value' });
  const dtypes = { bytes: 'binary', text: 'string', int64: 'int64', double: 'float64', bool: 'bool' } as const;
  const features = columns.map(({ name, holds }) => {
    if (holds === 'image') return [name, { _type: 'Image' }];
    if (holds === 'class' && classes.length > 0) return [name, { names: classes, _type: 'ClassLabel' }];
    return [name, value(dtypes[typeOf(holds)])];
  });
  return { info: { features: Object.fromEntries(features) } };
}

/** The header of a version 1 page: levels and plain values, not compressed. */
export function encodeDataPage(rows: number, bytes: number): Uint8Array {
  const writer = new ByteWriter();
  serializeTCompactProtocol(writer, {
    field_1: DATA_PAGE,
    field_2: bytes,
    field_3: bytes,
    field_5: { field_1: rows, field_2: PLAIN, field_3: RLE, field_4: RLE },
  });
  return writer.getBytes();
}

/** Encodes everything after the last row group. */
export function encodeFileFooter(table: Table, leaves: readonly Leaf[], groups: readonly WrittenGroup[]): Uint8Array {
  const own = JSON.parse(encodeTable(table));
  const metadata = {
    huggingface: JSON.stringify(featuresOf(table)),
    // The length of each row group's view, which cannot be known without reading its lengths.
    [TABLE_MARK]: JSON.stringify({ ...own, groups: groups.map(({ payloadBytes }) => payloadBytes) }),
  };
  const writer = new ByteWriter();
  serializeTCompactProtocol(writer, {
    field_1: 2,
    field_2: [{ field_4: 'schema', field_5: table.columns.length }, ...table.columns.flatMap(schemaOf)],
    field_3: BigInt(totalOf(groups, ({ rows }) => rows)),
    field_4: groups.map((group) => rowGroup(leaves, group)),
    field_5: Object.entries(metadata).map(([key, value]) => ({ field_1: key, field_2: value })),
    field_6: 'shardtool',
    field_7: leaves.map(() => ({ field_1: {} })),
  });
  writer.appendUint32(writer.offset);
  writer.appendBytes(MAGIC);
  return writer.getBytes();
}

function schemaOf({ name, holds }: TableColumn): object[] {
  if (holds !== 'image') return [element(name, typeOf(holds))];
  return [{ field_3: OPTIONAL, field_4: name, field_5: 2 }, element('bytes', 'bytes'), element('path', 'text')];
}

function element(name: string, type: Leaf['type']): object {
  return {
    field_1: TYPE[type],
    field_3: OPTIONAL,
    field_4: name,
    field_6: type === 'text' ? UTF8 : undefined,
    field_10: type === 'text' ? { field_1: {} } : undefined,
  };
}

function rowGroup(leaves: readonly Leaf[], { rows, chunks }: WrittenGroup): object {
  const bytes = BigInt(totalOf(chunks, (chunk) => chunk.bytes));
  return {
    field_1: chunks.map((chunk, i) => ({
      field_2: 0n,
      field_3: {
        field_1: TYPE[leaves[i]!.type],
        field_2: [PLAIN, RLE],
        field_3: leaves[i]!.path,
        field_4: UNCOMPRESSED,
        field_5: BigInt(rows),
        field_6: BigInt(chunk.bytes),
        field_7: BigInt(chunk.bytes),
        field_9: BigInt(chunk.offset),
      },
    })),
    field_2: bytes,
    field_3: BigInt(rows),
    field_5: BigInt(chunks[0]?.offset ?? MAGIC.length),
    field_6: bytes,
  };
}
