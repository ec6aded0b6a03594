import { DamagedShardError, TruncatedShardError, UnsupportedShardError } from '@shardtool/base';
import { type FileMetaData, parquetMetadata } from 'hyparquet';
import type { Source } from '../../source.js';

/** The end of a file: the length of its footer, and "PAR1". */
const TAIL_BYTES = 8;
const MAGIC = 'PAR1';
/** Size of the first read: nearly every footer is shorter. */
const FIRST_BYTES = 64 << 10;
/** Room for some million columns of row groups. */
const MOST_FOOTER_BYTES = 256 << 20;
/** Maximum rows of one row group: the positions of all of them are held in memory. */
const MOST_GROUP_ROWS = 1 << 26;

export type Footer = FileMetaData;

/** One column of one row group, from the footer. Offsets and lengths are those of the file. */
export interface Chunk {
  /** Offset of its first page. */
  readonly offset: number;
  readonly bytes: number;
  /** Size of its pages before compression, headers included. */
  readonly plainBytes: number;
  readonly codec: string;
  readonly values: number;
}

/**
 * The bytes of the footer, without the bytes after it: one read, or two if the footer is long. Throws {@link
 * TruncatedShardError} and {@link DamagedShardError}.
 */
export async function readFooterBytes(source: Source): Promise<Uint8Array> {
  const { location: shard, size } = source;
  if (size < 2 * TAIL_BYTES) throw notParquet(shard, size);
  const end = new Uint8Array(Math.min(size, FIRST_BYTES));
  await fill(source, size - end.length, end);
  const tail = Buffer.from(end.buffer, end.length - TAIL_BYTES, TAIL_BYTES);
  if (tail.toString('latin1', 4) !== MAGIC) throw notParquet(shard, size);
  const bytes = tail.readUInt32LE(0);
  if (bytes > Math.min(size - TAIL_BYTES - MAGIC.length, MOST_FOOTER_BYTES))
    throw damaged(shard, size - TAIL_BYTES, 'its footer exceeds the size limit');
  if (bytes + TAIL_BYTES <= end.length) return end.slice(end.length - TAIL_BYTES - bytes);
  const footer = new Uint8Array(bytes + TAIL_BYTES);
  footer.set(end, footer.length - end.length);
  await fill(source, size - footer.length, footer.subarray(0, footer.length - end.length));
  return footer;
}

/** Decodes the bytes of {@link readFooterBytes}. Throws {@link DamagedShardError} if they are invalid. */
export function parseFooter(bytes: Uint8Array, shard: string, size: number): Footer {
  let footer: Footer;
  try {
    footer = parquetMetadata(bytes, { geoparquet: false });
    checkFooter(footer, size - bytes.length);
  } catch (cause) {
    throw damaged(shard, size - bytes.length, `its footer cannot be read (${(cause as Error).message})`, cause);
  }
  const encrypted = footer.row_groups.some(({ columns }) => columns.some(({ crypto_metadata }) => crypto_metadata));
  if (encrypted)
    throw new UnsupportedShardError(
      { shard },
      `${shard}: its columns are encrypted; write it again without encryption.`,
    );
  return footer;
}

/** `end`: the offset of the footer. Throws RangeError. */
function checkFooter({ num_rows, row_groups, schema }: Footer, end: number): void {
  const leaves = schema.filter(({ type }) => type !== undefined).length;
  let rows = 0;
  for (const group of row_groups) {
    const inGroup = Number(group.num_rows);
    if (!(inGroup >= 0 && inGroup <= MOST_GROUP_ROWS)) throw new RangeError(`a row group of ${inGroup} rows`);
    rows += inGroup;
    if (group.columns.length !== leaves) throw new RangeError('a row group with columns that do not match the schema');
    // A row group without rows, which writers make of an empty table, may describe its columns arbitrarily.
    for (const column of inGroup === 0 ? [] : group.columns) {
      const { offset, bytes, plainBytes, values } = chunkOf(column);
      const isInside = offset >= MAGIC.length && bytes >= 0 && offset + bytes <= end;
      if (!isInside || !(plainBytes >= 0) || !(values >= inGroup)) throw new RangeError('a column outside the file');
    }
  }
  if (rows !== Number(num_rows)) throw new RangeError(`${num_rows} rows, but its row groups have ${rows}`);
}

/** The codecs that compress the pages of the file. */
export function codecsOf({ row_groups }: Footer): ReadonlySet<string> {
  return new Set(row_groups.flatMap(({ columns }) => columns.map(({ meta_data }) => meta_data?.codec ?? '')));
}

/** Throws RangeError if the footer does not describe it. */
export function chunkOf({ meta_data }: Footer['row_groups'][number]['columns'][number]): Chunk {
  if (meta_data === undefined) throw new RangeError('a column in another file');
  const { data_page_offset, dictionary_page_offset, total_compressed_size, total_uncompressed_size } = meta_data;
  const data = Number(data_page_offset);
  const dictionary = Number(dictionary_page_offset ?? 0);
  return {
    // Some writers store 0 for a missing dictionary.
    offset: dictionary > 0 && dictionary < data ? dictionary : data,
    bytes: Number(total_compressed_size),
    plainBytes: Number(total_uncompressed_size),
    codec: meta_data.codec,
    values: Number(meta_data.num_values),
  };
}

/** Throws {@link TruncatedShardError} if the file ends before `target` is full. */
export async function fill(source: Source, offset: number, target: Uint8Array): Promise<void> {
  const read = await source.readAt(offset, target);
  if (read === target.length) return;
  const { location: shard } = source;
  const message = `${shard}: it became shorter while it was read, at byte ${offset + read}; wait until it is written, and try again.`;
  throw new TruncatedShardError({ shard, offset: offset + read }, message);
}

function notParquet(shard: string, size: number): TruncatedShardError {
  const message = `${shard}: it does not end like a Parquet file, so it is not one, or was truncated at byte ${size}; fetch or write it again.`;
  return new TruncatedShardError({ shard, offset: size }, message);
}

export function damaged(shard: string, offset: number, what: string, cause?: unknown): DamagedShardError {
  return new DamagedShardError({ shard, offset }, `${shard}: ${what}; it is damaged: fetch or write it again.`, {
    cause,
  });
}
