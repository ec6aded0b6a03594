import { crc32, DamagedShardError, type LruCache, TruncatedShardError, UnsupportedShardError } from '@shardtool/base';
import { deserializeTCompactProtocol } from 'hyparquet/src/thrift.js';
import type { Source } from '../../../source.js';
import type { FileWindow } from '../../bytes/file-window.js';
import { type Chunk, damaged } from '../footer.js';
import { CODEC_NAMES, decompressed, UNCOMPRESSED } from './codecs.js';

/** One page of a column chunk. Apache Parquet format, parquet.thrift, PageHeader. */
export interface Page {
  readonly kind: 'data' | 'data v2' | 'dictionary';
  /** Offset of its bytes in the file, after its header, and their length. */
  readonly offset: number;
  readonly bytes: number;
  /** Size after decompression, levels included. */
  readonly plainBytes: number;
  readonly codec: string;
  /** For version 2 pages: the size of the uncompressed levels before the values. */
  readonly levelBytes: number;
  /** The part of it that belongs to repetition levels, which come first. */
  readonly repetitionBytes: number;
  readonly values: number;
  readonly encoding: number;
  /** crc32 of its bytes as stored; null if the writer stored none. */
  readonly crc32: number | null;
}

/** Numbers of the enumerations PageType and Encoding. */
const DATA_PAGE = 0;
const INDEX_PAGE = 1;
const DICTIONARY_PAGE = 2;
const DATA_PAGE_V2 = 3;
export const PLAIN = 0;
export const PLAIN_DICTIONARY = 2;
export const RLE = 3;
export const DELTA_LENGTH = 6;
export const RLE_DICTIONARY = 8;

/** How many bytes of a header are read first; statistics can make it longer. */
const HEADER_BYTES = 256;
const MOST_HEADER_BYTES = 1 << 20;
/** Maximum page size: a page is held in memory as a whole. */
const MOST_PAGE_BYTES = 1 << 30;

type Thrift = ReturnType<typeof deserializeTCompactProtocol>;

/** The pages of a chunk, as far as their headers could be read. */
export interface FoundPages {
  readonly pages: readonly Page[];
  /** The problem with the headers, if any; then only the values of a page prove how many it has. Null if all headers match the chunk. */
  readonly trouble: DamagedShardError | null;
}

/** Finds the pages of a chunk by their headers. Throws {@link UnsupportedShardError} for an unsupported codec. */
export async function findPages(window: FileWindow, shard: string, chunk: Chunk): Promise<FoundPages> {
  const pages: Page[] = [];
  try {
    await readHeaders(window, shard, chunk, pages);
    return { pages, trouble: null };
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { pages, trouble: error };
  }
}

/** Like {@link findPages}, but throws {@link DamagedShardError} if the pages do not match the chunk. */
export async function readPages(window: FileWindow, shard: string, chunk: Chunk): Promise<readonly Page[]> {
  const { pages, trouble } = await findPages(window, shard, chunk);
  if (trouble !== null) throw trouble;
  return pages;
}

/** Whether the error means that bytes have changed. A file that became shorter proves nothing. */
export function isDamage(error: unknown): error is DamagedShardError {
  return error instanceof DamagedShardError && !(error instanceof TruncatedShardError);
}

async function readHeaders(window: FileWindow, shard: string, chunk: Chunk, pages: Page[]): Promise<void> {
  const { codec } = chunk;
  if (!CODEC_NAMES.includes(codec)) {
    const message = `${shard}: its pages are compressed with ${codec}, which shardtool does not read; write it again with snappy, zstd, lz4 or no compression.`;
    throw new UnsupportedShardError({ shard }, message);
  }
  const end = chunk.offset + chunk.bytes;
  let plainBytes = 0;
  let values = 0;
  for (let at = chunk.offset; at < end && values < chunk.values; ) {
    const { header, headerBytes } = await readHeader(window, shard, at, end);
    const page = pageOf(header, at + headerBytes, codec);
    if (page === null) throw damaged(shard, at, `the page at byte ${at} has an unknown type`);
    plainBytes += headerBytes + page.plainBytes;
    const isInside = page.offset + page.bytes <= end && page.levelBytes <= page.bytes;
    if (!isInside || !(page.plainBytes >= page.levelBytes) || plainBytes > chunk.plainBytes || !(page.values >= 0))
      throw damaged(shard, at, `the page at byte ${at} is longer than its column`);
    if (codec === UNCOMPRESSED && page.bytes !== page.plainBytes)
      throw damaged(shard, at, `the page at byte ${at} has two different lengths`);
    if (page.plainBytes > MOST_PAGE_BYTES) {
      const message = `${shard}: the page at byte ${at} has ${page.plainBytes} bytes, more than 1 GiB; write it again with smaller pages.`;
      throw new UnsupportedShardError({ shard, offset: at }, message);
    }
    if (header.field_1 !== INDEX_PAGE) pages.push(page);
    if (page.kind !== 'dictionary') values += page.values;
    at = page.offset + page.bytes;
  }
  if (values !== chunk.values)
    throw damaged(shard, chunk.offset, `one of its columns has ${values} values, but its footer says ${chunk.values}`);
}

async function readHeader(window: FileWindow, shard: string, at: number, end: number) {
  for (let room = HEADER_BYTES; ; room *= 16) {
    const bytes = Math.min(room, end - at);
    const found = (await window.at(at, bytes)).subarray(0, bytes);
    const reader = { view: new DataView(found.buffer, found.byteOffset, found.byteLength), offset: 0 };
    try {
      const header: Thrift = deserializeTCompactProtocol(reader);
      return { header, headerBytes: reader.offset };
    } catch (cause) {
      if (room >= MOST_HEADER_BYTES || bytes === end - at)
        throw damaged(shard, at, `there is no page at byte ${at}`, cause);
    }
  }
}

/** Null if the header describes no valid page. Missing numbers are NaN, which every check rejects. */
function pageOf(header: Thrift, offset: number, codec: string): Page | null {
  const { field_1: kind, field_4: sum, field_5: data, field_7: dictionary, field_8: second } = header;
  const common = {
    offset,
    bytes: whole(header.field_3),
    plainBytes: whole(header.field_2),
    crc32: typeof sum === 'number' ? sum >>> 0 : null,
    codec,
    levelBytes: 0,
    repetitionBytes: 0,
    encoding: PLAIN,
  };
  if (kind === DATA_PAGE && typeof data === 'object')
    return { ...common, kind: 'data', values: whole(data.field_1), encoding: whole(data.field_2) };
  if (kind === DICTIONARY_PAGE && typeof dictionary === 'object')
    return { ...common, kind: 'dictionary', values: whole(dictionary.field_1) };
  if (kind === INDEX_PAGE) return { ...common, kind: 'dictionary', values: 0 };
  if (kind !== DATA_PAGE_V2 || typeof second !== 'object') return null;
  return {
    ...common,
    kind: 'data v2',
    codec: second.field_7 === false ? UNCOMPRESSED : codec,
    levelBytes: whole(second.field_5) + whole(second.field_6),
    repetitionBytes: whole(second.field_6),
    values: whole(second.field_1),
    encoding: whole(second.field_4),
  };
}

function whole(value: unknown): number {
  return typeof value === 'number' && value >= 0 ? value : Number.NaN;
}

/** Decompresses the bytes of a page: levels and values as encoded. Throws {@link DamagedShardError}. */
export function plainPage(page: Page, stored: Uint8Array, shard: string): Uint8Array {
  if (page.crc32 !== null && crc32(stored) !== page.crc32)
    throw damaged(
      shard,
      page.offset,
      `the page at byte ${page.offset} has changed since it was written (its crc32 does not match)`,
    );
  try {
    if (page.codec === UNCOMPRESSED) return stored;
    if (page.levelBytes === 0) return decompressed(page.codec, stored, page.plainBytes);
    const values = decompressed(page.codec, stored.subarray(page.levelBytes), page.plainBytes - page.levelBytes);
    const plain = new Uint8Array(page.plainBytes);
    plain.set(stored.subarray(0, page.levelBytes));
    plain.set(values, page.levelBytes);
    return plain;
  } catch (cause) {
    throw damaged(
      shard,
      page.offset,
      `the page at byte ${page.offset} cannot be decompressed (${(cause as Error).message})`,
      cause,
    );
  }
}

/** The decompressed bytes of recently used pages. */
export type PageCache = LruCache<Page, Uint8Array>;

/** Whether values can be read from the file one by one: they are stored plainly, and no checksum needs the whole page. */
export function liesOpen(page: Page, source: Source): boolean {
  return (
    page.codec === UNCOMPRESSED &&
    page.crc32 === null &&
    page.encoding === PLAIN &&
    page.kind !== 'dictionary' &&
    source.readNow !== undefined
  );
}
