import { crc32, joined } from '@shardtool/base';
import {
  type Chunk,
  decodeFooter,
  decodePageHeader,
  encodeFooter,
  encodePageHeader,
  type Footer,
  MAGIC,
} from './footer.js';
import { decodeLevels, encodeLevels } from './levels.js';
import { OPEN_SEAL, SEAL_KEY, seal } from './seal.js';
import { compressSnappy, decompressSnappy } from './snappy.js';
import { type ColumnValues, decodeValues, encodeValues, type ValueType } from './values.js';

/** A column of the file. */
export interface Column {
  readonly name: string;
  /** Whether the schema allows rows without a value. */
  readonly nullable: boolean;
  /** 1 or 0 for each row; null if every row has a value. Rows without a value take no space in `data`. */
  readonly present: Uint8Array | null;
  readonly data: ColumnValues;
}

const NO_LEVELS = new Uint8Array(0);

/**
 * Encodes a sealed Parquet file with one row group and one page per column. The same columns always give the same
 * bytes. The pages are not encoded by hyparquet-writer, which takes about ten times as long and creates a BigInt for
 * every offset.
 */
export function encodeParquet(
  rows: number,
  columns: readonly Column[],
  metadata: ReadonlyMap<string, string>,
): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [MAGIC];
  const chunks: Chunk[] = [];
  let offset = MAGIC.length;
  for (const column of columns) {
    const { chunk, pieces } = encodeColumn(column, rows, offset);
    chunks.push(chunk);
    parts.push(...pieces);
    offset += chunk.bytes;
  }
  parts.push(encodeFooter({ rows, chunks, metadata: new Map([...metadata, [SEAL_KEY, OPEN_SEAL]]) }));
  const file = joined(parts, Uint8Array);
  seal(file);
  return file;
}

function encodeColumn(column: Column, rows: number, offset: number): { chunk: Chunk; pieces: readonly Uint8Array[] } {
  const { name, nullable, data } = column;
  const { encoding, bytes } = encodeValues(data);
  const levels = nullable ? encodeLevels(column.present, rows) : NO_LEVELS;
  // Paths shrink to less than half; numbers are packed already.
  const compressed = data.type === 'string';
  const stored = compressed ? compressSnappy(bytes) : bytes;
  const header = encodePageHeader({
    rows,
    nulls: rows - data.values.length,
    encoding,
    levelBytes: levels.length,
    bytes: levels.length + stored.length,
    plainBytes: levels.length + bytes.length,
    crc32: crc32(stored, crc32(levels)),
  });
  const frame = header.length + levels.length;
  const sizes = { offset, bytes: frame + stored.length, plainBytes: frame + bytes.length };
  return {
    chunk: { name, type: data.type, nullable, encoding, compressed, ...sizes },
    pieces: [header, levels, stored],
  };
}

/** Columns of a file written by {@link encodeParquet}, whose seal the caller has verified. */
export interface ParquetColumns {
  readonly rows: number;
  /** Undefined if there is no column of that name. */
  typeOf(name: string): ValueType | undefined;
  /** Decodes one column; undefined if there is no column of that name. Throws RangeError if it has changed. */
  read(name: string): Column | undefined;
}

/** A whole file. */
export interface ParquetFile extends ParquetColumns {
  readonly metadata: ReadonlyMap<string, string>;
  /** The byte range of the column in the file; undefined if there is no column of that name. */
  spanOf(name: string): { readonly offset: number; readonly bytes: number } | undefined;
  /** Copies the pages of some columns, so that the rest of the file need not stay in memory. */
  copyOf(names: readonly string[]): ParquetColumns;
  /** Like `read`, for a file that has changed: also undefined unless the column's own page is unchanged. */
  readProven(name: string): Column | undefined;
  /**
   * The columns of the file, in order; null if {@link encodeParquet} did not write this footer. The footer stores
   * nearly everything twice, so a change is detected.
   */
  provenColumns(): readonly ColumnShape[] | null;
}

/** A column as described by the footer. */
export type ColumnShape = Pick<Chunk, 'name' | 'type' | 'nullable'>;

export function openParquet(bytes: Uint8Array): ParquetFile {
  const { rows, chunks, metadata } = decodeFooter(bytes);
  const byName = new Map(chunks.map((chunk) => [chunk.name, chunk]));
  const stored = ({ offset, bytes: length }: Chunk) => bytes.subarray(offset, offset + length);
  return {
    rows,
    metadata,
    typeOf: (name) => byName.get(name)?.type,
    spanOf: (name) => byName.get(name),
    read(name) {
      const chunk = byName.get(name);
      return chunk && decodeColumn(stored(chunk), chunk, rows);
    },
    copyOf: (names) =>
      columnsOfPages(
        names
          .flatMap((name) => byName.get(name) ?? [])
          .map((chunk) => ({ chunk, page: new Uint8Array(stored(chunk)) })),
        rows,
      ),
    readProven(name) {
      const chunk = byName.get(name);
      return chunk && isProven(stored(chunk), chunk, rows) ? decodeColumn(stored(chunk), chunk, rows) : undefined;
    },
    provenColumns: () => (isFooterProven(bytes, { rows, chunks, metadata }) ? chunks : null),
  };
}

/** A function of its own: a closure within {@link openParquet} would keep the file in memory. */
function columnsOfPages(
  pages: readonly { readonly chunk: Chunk; readonly page: Uint8Array }[],
  rows: number,
): ParquetColumns {
  const byName = new Map(pages.map((one) => [one.chunk.name, one]));
  return {
    rows,
    typeOf: (name) => byName.get(name)?.chunk.type,
    read(name) {
      const found = byName.get(name);
      return found && decodeColumn(found.page, found.chunk, rows);
    },
  };
}

/**
 * Whether the footer equals the one that would be written for the values read from it, and the pages fill the file up
 * to it without gaps.
 */
function isFooterProven(file: Uint8Array, footer: Footer): boolean {
  const encoded = encodeFooter(footer);
  const start = file.length - encoded.length;
  let offset = MAGIC.length;
  for (const chunk of footer.chunks) {
    if (chunk.offset !== offset || chunk.compressed !== (chunk.type === 'string')) return false;
    offset += chunk.bytes;
  }
  const names = new Set(footer.chunks.map(({ name }) => name));
  return offset === start && names.size === footer.chunks.length && isSame(file.subarray(start), encoded);
}

/**
 * Whether a page is unchanged. Its crc32 covers levels and values; each number in its header is also in the footer, or
 * follows from the levels. Throws RangeError if the bytes are not a page.
 */
function isProven(bytes: Uint8Array, chunk: Chunk, rows: number): boolean {
  const page = decodePageHeader(bytes);
  return (
    isSame(bytes.subarray(0, page.end), encodePageHeader(page)) &&
    page.rows === rows &&
    page.encoding === chunk.encoding &&
    page.end + page.bytes === bytes.length &&
    page.end + page.plainBytes === chunk.plainBytes &&
    page.crc32 === crc32(bytes.subarray(page.end))
  );
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function decodeColumn(bytes: Uint8Array, { name, type, nullable, compressed }: Chunk, rows: number): Column {
  const { end, nulls, encoding, levelBytes, plainBytes } = decodePageHeader(bytes);
  const levels = bytes.subarray(end, end + levelBytes);
  const stored = bytes.subarray(end + levelBytes);
  const values = compressed ? decompressSnappy(stored, plainBytes - levelBytes) : stored;
  const present = nullable ? decodeLevels(levels, rows) : null;
  if (missing(present) !== nulls || (!nullable && levelBytes !== 0)) {
    throw new RangeError('its definition levels do not fit the number of its values');
  }
  return {
    name,
    nullable,
    present,
    data: decodeValues(type, { encoding, bytes: values }, rows - nulls),
  };
}

function missing(present: Uint8Array | null): number {
  let count = 0;
  for (let row = 0; row < (present?.length ?? 0); row++) count += 1 - present![row]!;
  return count;
}
