import { crc32, DamagedShardError, type LruCache, TruncatedShardError, UnsupportedShardError } from '@shardtool/base';
import { deserializeTCompactProtocol } from 'hyparquet/src/thrift.js';
import type { Source } from '../../source.js';
import type { FileWindow } from '../file-window.js';
import { CODEC_NAMES, decompressed, UNCOMPRESSED } from './codecs.js';
import { type Chunk, damaged } from './footer.js';

/** One page of a column chunk. Apache Parquet format, parquet.thrift, PageHeader. */
export interface Page {
  readonly kind: 'data' | 'data v2' | 'dictionary';
  /** Where its bytes lie in the file, behind its header, and how many they are. */
  readonly offset: number;
  readonly bytes: number;
  /** Of its bytes when they are decompressed; levels included. */
  readonly plainBytes: number;
  readonly codec: string;
  /** Of the values in front of which levels lie uncompressed, of pages of version 2. */
  readonly levelBytes: number;
  /** Of these, those of repetition levels, which come first. */
  readonly repetitionBytes: number;
  readonly values: number;
  readonly encoding: number;
  /** Of its bytes as they are stored; null where the writer kept none. */
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

/** A header is tried in so many bytes at first; statistics can make it longer. */
const HEADER_BYTES = 256;
const MOST_HEADER_BYTES = 1 << 20;
/** A page is held in memory as a whole. */
const MOST_PAGE_BYTES = 1 << 30;

type Thrift = ReturnType<typeof deserializeTCompactProtocol>;

/** The pages of a chunk as far as their headers could be read. */
export interface FoundPages {
  readonly pages: readonly Page[];
  /** What is wrong with the headers; then nothing but a page's own values proves how many it has. Null where all fit the chunk. */
  readonly trouble: DamagedShardError | null;
}

/**
 * The pages of a chunk, found by their headers. Throws {@link UnsupportedShardError} for a codec that is not read.
 */
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

/** The same, throwing {@link DamagedShardError} where they do not fit the chunk. */
export async function readPages(window: FileWindow, shard: string, chunk: Chunk): Promise<readonly Page[]> {
  const { pages, trouble } = await findPages(window, shard, chunk);
  if (trouble !== null) throw trouble;
  return pages;
}

/** Whether bytes are not what was written. Of a file that became shorter nothing can be said. */
export function isDamage(error: unknown): error is DamagedShardError {
  return error instanceof DamagedShardError && !(error instanceof TruncatedShardError);
}

async function readHeaders(window: FileWindow, shard: string, chunk: Chunk, pages: Page[]): Promise<void> {
  const { codec } = chunk;
  if (!CODEC_NAMES.includes(codec)) {
    const message = `${shard}: its pages are compressed by ${codec}, which is not read; write it anew with snappy, zstd or none.`;
    throw new UnsupportedShardError({ shard }, message);
  }
  const end = chunk.offset + chunk.bytes;
  let plainBytes = 0;
  let values = 0;
  for (let at = chunk.offset; at < end && values < chunk.values; ) {
    const { header, headerBytes } = await readHeader(window, shard, at, end);
    const page = pageOf(header, at + headerBytes, codec);
    if (page === null) throw damaged(shard, at, `the page at byte ${at} is of a kind that there is not`);
    plainBytes += headerBytes + page.plainBytes;
    const isInside = page.offset + page.bytes <= end && page.levelBytes <= page.bytes;
    if (!isInside || !(page.plainBytes >= page.levelBytes) || plainBytes > chunk.plainBytes || !(page.values >= 0))
      throw damaged(shard, at, `the page at byte ${at} is longer than its column`);
    if (codec === UNCOMPRESSED && page.bytes !== page.plainBytes)
      throw damaged(shard, at, `the page at byte ${at} has two lengths`);
    if (page.plainBytes > MOST_PAGE_BYTES) {
      const message = `${shard}: the page at byte ${at} has ${page.plainBytes} bytes, more than 1 GiB; write it anew with smaller pages.`;
      throw new UnsupportedShardError({ shard, offset: at }, message);
    }
    if (header.field_1 !== INDEX_PAGE) pages.push(page);
    if (page.kind !== 'dictionary') values += page.values;
    at = page.offset + page.bytes;
  }
  if (values !== chunk.values)
    throw damaged(shard, chunk.offset, `a column of it has ${values} values, and its footer says ${chunk.values}`);
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

/** Null where the header is of no page that there is. Numbers that it lacks are NaN, which no check lets through. */
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

/** Levels and values of a page as its encoding has them, from its bytes in the file. Throws {@link DamagedShardError}. */
export function plainPage(page: Page, stored: Uint8Array, shard: string): Uint8Array {
  if (page.crc32 !== null && crc32(stored) !== page.crc32)
    throw damaged(
      shard,
      page.offset,
      `the page at byte ${page.offset} has changed since it was written (its crc32 is another)`,
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

/** The bytes of pages when they are decompressed, the ones used last. */
export type PageCache = LruCache<Page, Uint8Array>;

/** Whether values can be read from the file one by one: they lie there as they are, and no checksum wants the whole page. */
export function liesOpen(page: Page, source: Source): boolean {
  return (
    page.codec === UNCOMPRESSED &&
    page.crc32 === null &&
    page.encoding === PLAIN &&
    page.kind !== 'dictionary' &&
    source.readNow !== undefined
  );
}
