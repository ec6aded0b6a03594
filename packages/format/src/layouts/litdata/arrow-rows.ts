/**
 * Chunks with their rows in an Arrow table, as newer versions of LitData store dicts of plain values. Such a chunk is the
 * beginning of a plain chunk whose samples are empty, a file of Arrow IPC, its length (uint32) and a magic. Values of a
 * row are apart from each other, so the chunk is written again as a plain chunk.
 */
import type { Source } from '../../source.js';
import { loadZstd } from '../bytes/zstd.js';
import { damaged, unsupported } from '../columns/value-columns.js';
import { FlatTable } from './flatbuffer.js';
import { bytesAt, inflate, plainHead } from './plain-chunk.js';

/** The last bytes of such a chunk. */
export const ARROW = Buffer.from('LDARW01\0', 'latin1');
const END_BYTES = 4 + ARROW.length;
/** The end of a file of Arrow IPC: the length of its footer, and a magic. */
const IPC_MAGIC = Buffer.from('ARROW1', 'latin1');
const BLOCK_BYTES = 24;
const PAIR_BYTES = 16;
const RECORD_BATCH = 3;
const ZSTD_CODEC = 1;
/** Maximum depth of structs. */
const DEEPEST = 32;

/** Numbers of types (format/Schema.fbs). */
const TYPES = { int: 2, float: 3, binary: 4, text: 5, bool: 6, struct: 13, largeBinary: 19, largeText: 20 } as const;

/** A column of the table, which may be a part of structs. */
interface ArrowColumn {
  /** Its name, and before it those of its structs: `meta/width`. */
  readonly name: string;
  /** How LitData stores its values in a plain chunk. */
  readonly serializer: 'bytes' | 'str' | 'int' | 'float' | 'bool';
  /** Bytes of an offset of a text or of bytes. */
  readonly offsetBytes: 4 | 8;
  /** Index of its own node in a record batch, and those of its structs; index of its first buffer. */
  readonly nodes: readonly number[];
  readonly buffer: number;
}

/** A value that LitData has in a plain chunk, by its name and serializer. */
interface WantedValue {
  readonly name: string;
  readonly serializer: string;
}

/** One record batch in memory: the bytes of each value of each row. */
interface RowBatch {
  readonly rows: number;
  valueOf(column: number, row: number): Uint8Array;
}

/**
 * The chunk as a plain chunk whose samples have these values. Throws DamagedShardError, and UnsupportedShardError for
 * missing values and types that a plain chunk does not have.
 */
export async function* ofArrowRows(source: Source, wanted: readonly WantedValue[]): AsyncGenerator<Uint8Array> {
  try {
    yield* plainRows(source, wanted);
  } catch (error) {
    // Damage of metadata shows in positions outside of it.
    if (error instanceof RangeError || error instanceof TypeError)
      throw damaged(source.location, 0, 'its Arrow table cannot be read');
    throw error;
  }
}

async function* plainRows(source: Source, wanted: readonly WantedValue[]): AsyncGenerator<Uint8Array> {
  const { location: shard, size } = source;
  await loadZstd();
  const table = await openTable(source);
  const columns = wanted.map(({ name, serializer }) => {
    const column = table.columns.find((one) => one.name === name);
    const kind = serializer.split(':')[0];
    if (column === undefined)
      throw damaged(shard, size, `its table has no column "${name}", which index.json describes`);
    if (column.serializer !== kind && !(column.serializer === 'str' && kind === 'text'))
      throw unsupported(
        shard,
        `its column "${name}" is not ${kind} in each row; write it again with values of one type`,
      );
    return column;
  });
  const other = table.columns.find(({ name }) => !wanted.some((one) => one.name === name));
  if (other !== undefined)
    throw unsupported(
      shard,
      `some of its rows have the value "${other.name}", which the first row does not have; write it again with the same keys in each dict`,
    );
  const sizes: number[] = [];
  for (let i = 0; i < table.batches; i++) {
    const batch = await table.batch(i, columns);
    for (let row = 0; row < batch.rows; row++) {
      let bytes = 4 * columns.length;
      for (let column = 0; column < columns.length; column++) bytes += batch.valueOf(column, row).length;
      sizes.push(bytes);
    }
  }
  yield plainHead(sizes, shard);
  for (let i = 0; i < table.batches; i++) {
    const batch = await table.batch(i, columns);
    for (let row = 0; row < batch.rows; row++) {
      const values = columns.map((_, column) => batch.valueOf(column, row));
      const lengths = Buffer.alloc(4 * values.length);
      for (const [column, value] of values.entries()) lengths.writeUInt32LE(value.length, 4 * column);
      yield Buffer.concat([lengths, ...values]);
    }
  }
}

interface ArrowTable {
  readonly columns: readonly ArrowColumn[];
  /** Number of record batches. */
  readonly batches: number;
  batch(index: number, columns: readonly ArrowColumn[]): Promise<RowBatch>;
}

async function openTable(source: Source): Promise<ArrowTable> {
  const { location: shard, size } = source;
  const length = (await bytesAt(source, size - END_BYTES, 4)).readUInt32LE(0);
  const start = size - END_BYTES - length;
  const end = start + length;
  const tail = await bytesAt(source, Math.max(start, end - IPC_MAGIC.length - 4), IPC_MAGIC.length + 4);
  const head = await bytesAt(source, start, IPC_MAGIC.length);
  if (!head.equals(IPC_MAGIC) || !tail.subarray(4).equals(IPC_MAGIC))
    throw damaged(shard, start, 'its table is not a file of Arrow IPC');
  const footerBytes = tail.readUInt32LE(0);
  const footer = FlatTable.root(await bytesAt(source, end - tail.length - footerBytes, footerBytes));
  const columns = columnsOf(footer.table(1)!.tables(1), shard);
  const blocks = footer.structs(3, BLOCK_BYTES);
  return {
    columns,
    batches: blocks.length,
    batch: (index, wanted) => readBatch(source, start, blocks[index]!, wanted),
  };
}

/** All columns that are not structs, in the order in which a record batch has their buffers. */
function columnsOf(fields: readonly FlatTable[], shard: string): ArrowColumn[] {
  const columns: ArrowColumn[] = [];
  let [node, buffer] = [0, 0];
  const add = (field: FlatTable, parents: { readonly name: string; readonly nodes: readonly number[] }): void => {
    const name = parents.name === '' ? field.text(0) : `${parents.name}/${field.text(0)}`;
    const type = field.byte(2);
    const nodes = [...parents.nodes, node++];
    if (nodes.length > DEEPEST) throw new RangeError('it is too deep');
    if (type === TYPES.struct) {
      buffer += 1;
      for (const child of field.tables(5)) add(child, { name, nodes });
      return;
    }
    const serializer = field.table(4) === null ? serializerOf(type, field.table(3)) : null;
    if (serializer === null)
      throw unsupported(
        shard,
        `its value "${name}" has a type of Arrow that shardtool does not read; write it again as bytes, text, a whole number, a float or a boolean`,
      );
    const isLarge = type === TYPES.largeBinary || type === TYPES.largeText;
    columns.push({ name, serializer, offsetBytes: isLarge ? 8 : 4, nodes, buffer });
    buffer += serializer === 'bytes' || serializer === 'str' ? 3 : 2;
  };
  for (const field of fields) add(field, { name: '', nodes: [] });
  return columns;
}

/** Null for types other than those that LitData's own values become. */
function serializerOf(type: number, detail: FlatTable | null): ArrowColumn['serializer'] | null {
  if (type === TYPES.binary || type === TYPES.largeBinary) return 'bytes';
  if (type === TYPES.text || type === TYPES.largeText) return 'str';
  if (type === TYPES.bool) return 'bool';
  if (type === TYPES.int && detail!.int32(0) === 64 && detail!.byte(1) === 1) return 'int';
  return type === TYPES.float && detail!.int16(0) === 2 ? 'float' : null;
}

async function readBatch(
  source: Source,
  start: number,
  block: Buffer,
  columns: readonly ArrowColumn[],
): Promise<RowBatch> {
  const { location: shard } = source;
  const offset = start + Number(block.readBigInt64LE(0));
  const [metaBytes, bodyBytes] = [block.readInt32LE(8), Number(block.readBigInt64LE(16))];
  const meta = await bytesAt(source, offset, metaBytes);
  // A marker and the length of the message are in front of it.
  const message = FlatTable.root(meta.subarray(8));
  if (message.byte(1) !== RECORD_BATCH)
    throw damaged(shard, offset, 'its Arrow table has no rows where its footer says');
  const record = message.table(2)!;
  const rows = record.int64(0);
  const nodes = record.structs(1, PAIR_BYTES);
  const buffers = record.structs(2, PAIR_BYTES);
  const compression = record.table(3);
  if (compression !== null && compression.byte(0) !== ZSTD_CODEC)
    throw unsupported(
      shard,
      'its Arrow table is compressed with LZ4, which shardtool does not read; write it again without compression',
    );
  for (const { name, nodes: own } of columns)
    if (own.some((node) => Number(nodes[node]!.readBigInt64LE(8)) > 0))
      throw unsupported(
        shard,
        `its value "${name}" is missing in some rows, which plain samples of LitData cannot express; write it again with a value in each row`,
      );
  const body = await bytesAt(source, offset + metaBytes, bodyBytes);
  const bufferAt = (index: number): Buffer => {
    const entry = buffers[index]!;
    const [at, length] = [Number(entry.readBigInt64LE(0)), Number(entry.readBigInt64LE(8))];
    if (at < 0 || length < 0 || at + length > body.length) throw new RangeError('a buffer is outside of its body');
    const stored = body.subarray(at, at + length);
    if (compression === null || length === 0) return stored;
    const plain = Number(stored.readBigInt64LE(0));
    // -1: this buffer is not compressed.
    return plain === -1 ? stored.subarray(8) : Buffer.from(inflate(stored.subarray(8), plain, shard, offset));
  };
  const readers = columns.map((column) => valueReader(column, bufferAt, rows));
  return { rows, valueOf: (column, row) => readers[column]!(row) };
}

/** Reads the values of a column of a record batch, as a plain chunk of LitData has them. */
function valueReader(
  { serializer, offsetBytes, buffer }: ArrowColumn,
  bufferAt: (index: number) => Buffer,
  rows: number,
): (row: number) => Uint8Array {
  const second = bufferAt(buffer + 1);
  if (serializer === 'bool') return (row) => Uint8Array.of((second.readUInt8(row >> 3) >> (row & 7)) & 1);
  if (serializer === 'int' || serializer === 'float') {
    if (second.length < 8 * rows) throw new RangeError('a column is shorter than its rows');
    return (row) => second.subarray(8 * row, 8 * row + 8);
  }
  const data = bufferAt(buffer + 2);
  const at = (i: number): number =>
    offsetBytes === 4 ? second.readInt32LE(4 * i) : Number(second.readBigInt64LE(8 * i));
  return (row) => {
    const [first, end] = [at(row), at(row + 1)];
    if (first < 0 || end < first || end > data.length) throw new RangeError('a value is outside of its column');
    return data.subarray(first, end);
  };
}
