import { countOf, ShardIndexError, ShardtoolError, VersionError, writeAtomically } from '@shardtool/base';
import {
  isRemote,
  openSource,
  readAgainIf,
  readWhole,
  type Source,
  type StorageOptions,
  shownLocation,
} from '@shardtool/storage';
import { planRuns } from '../layouts/bytes/read-runs.js';
import { encodeParquet, openParquet, type ParquetFile } from '../parquet/parquet.js';
import { sealState } from '../parquet/seal.js';
import { COLUMN_TYPES, type ColumnType, type ColumnValue, columnTypeOf } from '../sample/label-column.js';
import { type ColumnNames, checkLabelColumns, columnsOf, columnsOfPart, type IndexPart, takePart } from './columns.js';
import { asSalvaged, type SalvagedField, type SalvagedIndex, salvageColumns } from './salvage.js';

/** The index of one shard in memory: columns with one row per sample, in the order of the shard's plan. */
export interface ShardIndex {
  readonly samples: number;
  readonly key: readonly string[];
  /** Path of the image relative to the packed folder; '' if unknown. */
  readonly source: readonly string[];
  /** The sample's range in the shard, headers included, in bytes. */
  readonly offset: Float64Array;
  readonly bytes: Float64Array;
  /** Columns of the fields, by field name (`jpg`, `cls`, `seg.png`). */
  readonly fields: ReadonlyMap<string, FieldColumns>;
  /** Size of the stored image in pixels; 0 if there is none, or if it is unknown. */
  readonly width: Int32Array;
  readonly height: Int32Array;
  /** EXIF orientation 1..8; 1 if the file has none, 0 if unknown. */
  readonly orientation: Uint8Array;
  /** Class number; -1 for none. */
  readonly cls: Int32Array;
  /** Label columns, by name. */
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
  /** Their types, so that all shards of a dataset agree. If absent, each column's own values decide. */
  readonly columnTypes?: ReadonlyMap<string, ColumnType>;
}

/** An index without the paths of the packed files: they are most of its bytes and no loader needs them, so they are not fetched. */
export type LoadedIndex = Omit<ShardIndex, 'source'> & Partial<Pick<ShardIndex, 'source'>>;

/** One field of every sample. If a sample lacks the field, `offset` is -1 and the other values are 0. */
export interface FieldColumns {
  /** Offset of its bytes in the shard. */
  readonly offset: Float64Array;
  readonly bytes: Float64Array;
  /** crc32 of the payload, whatever its stored form. Absent if the payloads have not been read yet: then they cannot be checked. */
  readonly crc32?: Uint32Array;
  /** 1 if the bytes are a msgpack value whose text is the payload: see `fieldPayload`. Absent if none is. */
  readonly msgpack?: Uint8Array;
}

/** The columns of a field whose payloads have been read. */
export interface SummedColumns extends FieldColumns {
  readonly crc32: Uint32Array;
}

export {
  asSalvaged,
  COLUMN_TYPES,
  type ColumnType,
  type ColumnValue,
  checkLabelColumns,
  columnTypeOf,
  type IndexPart,
  type SalvagedField,
  type SalvagedIndex,
};

/** Which parts of an index to decode. Strings cost most: positions alone take a fifth of the time. */
export interface IndexChoice<P extends IndexPart> {
  readonly parts: readonly P[];
  /** Only these fields. Fields that no sample of the shard has are omitted. */
  readonly fields?: readonly string[] | undefined;
  /** Only these label columns. Columns that the shard does not have are omitted. */
  readonly columns?: readonly string[] | undefined;
}

/** The requested parts. */
export type PartOfIndex<P extends IndexPart> = Pick<ShardIndex, 'samples' | P>;

const VERSION = 1;
const DESCRIPTION_KEY = 'shardtool.index';
const ALL_PARTS: readonly IndexPart[] = [
  'key',
  'source',
  'offset',
  'bytes',
  'fields',
  'width',
  'height',
  'orientation',
  'cls',
  'columns',
  'columnTypes',
];

/**
 * The index as a Parquet file: `key`, `source`, `offset`, `bytes`; for each field `<field>.offset`, `.bytes`, `.crc32`,
 * null if a sample lacks it (and `.msgpack` if any is 1); `width`, `height`, `orientation`, `cls`; then the label
 * columns. Equal indexes give equal bytes. Throws {@link OptionError} if a label column has one of these names or mixes
 * types.
 */
export function encodeShardIndex(index: ShardIndex): Uint8Array<ArrayBuffer> {
  const names: ColumnNames = { fields: [...index.fields.keys()], columns: [...index.columns.keys()] };
  const description = JSON.stringify({ version: VERSION, ...names });
  return encodeParquet(index.samples, columnsOf(index), new Map([[DESCRIPTION_KEY, description]]));
}

/**
 * The inverse of {@link encodeShardIndex}, or some parts of it. `path` is the index's name, for messages. Throws {@link
 * ShardIndexError} if a byte has changed, {@link VersionError} if a newer version wrote it.
 */
export function decodeShardIndex(bytes: Uint8Array, path: string): ShardIndex;
export function decodeShardIndex<P extends IndexPart>(
  bytes: Uint8Array,
  path: string,
  choice: IndexChoice<P>,
): PartOfIndex<P>;
export function decodeShardIndex(
  bytes: Uint8Array,
  path: string,
  choice: IndexChoice<IndexPart> = { parts: ALL_PARTS },
): Partial<ShardIndex> {
  return readIndexFile(bytes, path, (file, stored) => {
    const names = chosenNames(stored, choice);
    const parts = choice.parts.map((part) => [part, takePart(file, part, names)]);
    return { samples: file.rows, ...Object.fromEntries(parts) };
  });
}

/** Takes columns of an index whose bytes are unchanged. Throws like {@link decodeShardIndex}. */
export function readIndexFile<T>(
  bytes: Uint8Array,
  path: string,
  take: (file: ParquetFile, names: ColumnNames) => T,
): T {
  checkSeal(bytes, path);
  return orUnusable(path, () => {
    const file = openParquet(bytes);
    const { version, ...names } = describe(file.metadata.get(DESCRIPTION_KEY));
    if (version > VERSION) throw newer(version, path);
    return take(file, names);
  });
}

/** Errors of `take` become a {@link ShardIndexError}. */
export function orUnusable<T>(path: string, take: () => T): T {
  try {
    return take();
  } catch (cause) {
    if (cause instanceof ShardtoolError) throw cause;
    throw unusable(path, `is not a complete index (${(cause as Error).message})`, cause);
  }
}

/**
 * The intact parts of an index that has changed since it was written: each column is a page with its own crc32. Null if
 * the description of the columns has changed, so that nothing can be used.
 */
export function salvageShardIndex(bytes: Uint8Array): SalvagedIndex | null {
  try {
    const file = openParquet(bytes);
    return salvageColumns(file, describe(file.metadata.get(DESCRIPTION_KEY)));
  } catch {
    return null;
  }
}

/**
 * Reads an index, or some parts of it. Throws {@link ShardIndexError} if a byte has changed, {@link VersionError} if a
 * newer version wrote it, {@link FileError} if it cannot be read.
 */
export function readShardIndex(path: string, choice?: undefined, storage?: StorageOptions): Promise<ShardIndex>;
export function readShardIndex<P extends IndexPart>(
  path: string,
  choice: IndexChoice<P>,
  storage?: StorageOptions,
): Promise<PartOfIndex<P>>;
export async function readShardIndex(
  path: string,
  choice?: IndexChoice<IndexPart>,
  storage?: StorageOptions,
): Promise<Partial<ShardIndex>> {
  return readAgainIf([ShardIndexError, VersionError], path, storage, async () => {
    if (choice !== undefined && isRemote(path)) return readRemote(path, choice, storage);
    const bytes = await readWhole(path, storage);
    const shown = shownLocation(path);
    return choice === undefined ? decodeShardIndex(bytes, shown) : decodeShardIndex(bytes, shown, choice);
  });
}

/** Writes the index under a temporary name, flushes it and renames it. Throws {@link FileError}. */
export async function writeShardIndex(path: string, index: ShardIndex): Promise<void> {
  await writeAtomically(path, encodeShardIndex(index));
}

/** An index of at most this size is fetched as a whole, by the request that also returns its size. */
const FETCHED_WHOLE_BYTES = 256 << 10;
/** After the last column come the footer, its length and the magic number. */
const TAIL_BYTES = 8;

/**
 * Reads parts of a remote index: its footer, and the columns of the parts. The checksums of the pages protect them,
 * because the seal covers only the whole file.
 */
async function readRemote(
  path: string,
  choice: IndexChoice<IndexPart>,
  storage: StorageOptions | undefined,
): Promise<Partial<ShardIndex>> {
  const source = await openSource(path, { first: 'end', firstBytes: FETCHED_WHOLE_BYTES }, storage);
  const shown = source.location;
  try {
    // Memory that is never written takes no physical memory.
    const bytes = new Uint8Array(source.size);
    if (source.size <= FETCHED_WHOLE_BYTES) {
      await source.readAt(0, bytes);
      return decodeShardIndex(bytes, shown, choice);
    }
    const tail = source.size - TAIL_BYTES;
    await source.readAt(tail, bytes.subarray(tail));
    const footer = tail - new DataView(bytes.buffer).getUint32(tail, true);
    if (footer < 0) throw unusable(shown, 'is not an index written by shardtool, or its end is missing');
    await source.readAt(footer, bytes.subarray(footer, tail));
    return await fetchParts(source, bytes, choice);
  } finally {
    await source.close();
  }
}

async function fetchParts(
  source: Source,
  bytes: Uint8Array,
  choice: IndexChoice<IndexPart>,
): Promise<Partial<ShardIndex>> {
  const path = source.location;
  try {
    const file = openParquet(bytes);
    const { version, ...stored } = describe(file.metadata.get(DESCRIPTION_KEY));
    if (version > VERSION) throw newer(version, path);
    const names = chosenNames(stored, choice);
    const wanted = choice.parts
      .flatMap((part) => columnsOfPart(part, names))
      .flatMap((name) => file.spanOf(name) ?? []);
    await Promise.all(
      planRuns(wanted).map(({ offset, bytes: length }) =>
        source.readAt(offset, bytes.subarray(offset, offset + length)),
      ),
    );
    const proven = { ...file, read: (name: string) => file.readProven(name) };
    return {
      samples: file.rows,
      ...Object.fromEntries(choice.parts.map((part) => [part, takePart(proven, part, names)])),
    };
  } catch (cause) {
    if (cause instanceof ShardtoolError) throw cause;
    throw unusable(path, `is not a complete index (${(cause as Error).message})`, cause);
  }
}

function chosenNames({ fields, columns }: ColumnNames, choice: IndexChoice<IndexPart>): ColumnNames {
  return {
    fields: fields.filter((name) => choice.fields?.includes(name) ?? true),
    columns: columns.filter((name) => choice.columns?.includes(name) ?? true),
  };
}

function checkSeal(bytes: Uint8Array, path: string): void {
  const state = sealState(bytes);
  if (state === 'missing') throw unusable(path, 'is not an index that shardtool wrote, or its end is cut off');
  if (state === 'damaged') throw unusable(path, 'has changed since it was written');
}

/** The error for an index of another shard, or of another version of its shard. */
export function wrongSamples(path: string, found: number, listed: number): ShardIndexError {
  const what = `has ${countOf(found, 'sample')}, but dataset.json lists ${listed} for its shard`;
  return unusable(path, what);
}

function describe(json: string | undefined): ColumnNames & { readonly version: number } {
  if (json === undefined) throw new RangeError('it does not describe its columns');
  return JSON.parse(json);
}

function newer(found: number, path: string): VersionError {
  const message = `${path} is an index of version ${found}, but this shardtool reads version ${VERSION}; update shardtool.`;
  return new VersionError({ path, found, known: VERSION }, message);
}

function unusable(path: string, what: string, cause?: unknown): ShardIndexError {
  const message = `${path} ${what}; restore it, or rebuild it from its shard with "shardtool verify --fix" (for a tar of other software: "shardtool index --overwrite").`;
  return new ShardIndexError({ path }, message, { cause });
}
