import { ShardIndexError, ShardtoolError, VersionError, writeAtomically } from '@shardtool/base';
import {
  isRemote,
  openSource,
  readAgainIf,
  readWhole,
  type Source,
  type StorageOptions,
  shownLocation,
} from '@shardtool/storage';
import { encodeParquet, openParquet } from '../parquet/parquet.js';
import { sealState } from '../parquet/seal.js';
import { type ColumnNames, checkLabelColumns, columnsOf, columnsOfPart, type IndexPart, takePart } from './columns.js';
import { COLUMN_TYPES, type ColumnType, type ColumnValue, columnTypeOf } from './label-column.js';
import { planRuns } from './read-runs.js';
import { asSalvaged, type SalvagedField, type SalvagedIndex, salvageColumns } from './salvage.js';

/** The index of one shard in memory: columns, one row a sample, in the order of the shard's plan. */
export interface ShardIndex {
  readonly samples: number;
  readonly key: readonly string[];
  /** Path of the image below the packed folder; '' where it is not known. */
  readonly source: readonly string[];
  /** The sample's span in the shard, headers included, in bytes. */
  readonly offset: Float64Array;
  readonly bytes: Float64Array;
  /** By field name (`jpg`, `cls`, `seg.png`). */
  readonly fields: ReadonlyMap<string, FieldColumns>;
  /** Of the image as it is stored; 0 where there is none, or nobody has looked. */
  readonly width: Int32Array;
  readonly height: Int32Array;
  /** EXIF orientation 1..8; 1 where the file names none, 0 where nobody has looked. */
  readonly orientation: Uint8Array;
  /** Class number; -1 where there is none. */
  readonly cls: Int32Array;
  /** Further columns that came with the labels, by name. */
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
  /** Their types, so that all shards of a dataset agree; without it each column's own values decide. */
  readonly columnTypes?: ReadonlyMap<string, ColumnType>;
}

/** An index without the paths of the packed files: they are most of it and no loader needs them, so they are not fetched. */
export type LoadedIndex = Omit<ShardIndex, 'source'> & Partial<Pick<ShardIndex, 'source'>>;

/** One field of every sample. `offset` is -1 where a sample lacks the field, and the others are 0 there. */
export interface FieldColumns {
  /** Where its bytes lie in the shard. */
  readonly offset: Float64Array;
  readonly bytes: Float64Array;
  /** Of the payload, whatever the layout makes of it. Absent where nobody has read the payloads yet: they cannot be checked then. */
  readonly crc32?: Uint32Array;
  /** 1 where the bytes are a msgpack value whose text is the payload: see `fieldPayload`. Absent where none is. */
  readonly msgpack?: Uint8Array;
}

/** The columns of a field whose payloads somebody has read. */
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

/** What of an index is to be decoded. Strings cost most: positions alone take a fifth of the time. */
export interface IndexChoice<P extends IndexPart> {
  readonly parts: readonly P[];
  /** Only these fields; those that no sample of the shard has are left out. */
  readonly fields?: readonly string[] | undefined;
  /** Only these label columns; those that the shard does not have are left out. */
  readonly columns?: readonly string[] | undefined;
}

/** The parts that were asked for. */
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
 * null where a sample lacks it (and `.msgpack` where any is 1); `width`, `height`, `orientation`, `cls`; then the label
 * columns. Equal indexes give equal bytes. Throws {@link OptionError} where a label column takes one of these names or
 * mixes types.
 */
export function encodeShardIndex(index: ShardIndex): Uint8Array<ArrayBuffer> {
  const names: ColumnNames = { fields: [...index.fields.keys()], columns: [...index.columns.keys()] };
  const description = JSON.stringify({ version: VERSION, ...names });
  return encodeParquet(index.samples, columnsOf(index), new Map([[DESCRIPTION_KEY, description]]));
}

/**
 * The inverse of {@link encodeShardIndex}, or some parts of it. `path` is the index's name, for messages. Throws
 * {@link ShardIndexError} where a byte of it has changed, {@link VersionError} where a newer version wrote it.
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
  checkSeal(bytes, path);
  try {
    const file = openParquet(bytes);
    const { version, ...stored } = describe(file.metadata.get(DESCRIPTION_KEY));
    if (version > VERSION) throw newer(version, path);
    const names = chosenNames(stored, choice);
    const parts = choice.parts.map((part) => [part, takePart(file, part, names)]);
    return { samples: file.rows, ...Object.fromEntries(parts) };
  } catch (cause) {
    if (cause instanceof ShardtoolError) throw cause;
    throw unusable(path, `is not a complete index (${(cause as Error).message})`, cause);
  }
}

/**
 * What is left of an index that has changed since it was written: each column is a page of its own with a crc32 of its
 * own. Null where nothing is, since what says which column is where has changed.
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
 * Reads an index, or some parts of it. Throws {@link ShardIndexError} where a byte of it has changed, {@link VersionError}
 * where a newer version wrote it, {@link FileError} where it cannot be read.
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
  return readAgainIf([ShardIndexError, VersionError], path, async () => {
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

/** Of an index that is no longer than this all is fetched. */
const FETCHED_WHOLE_BYTES = 256 << 10;
/** Behind the last column there are the footer, its length and the magic number. */
const TAIL_BYTES = 8;

/**
 * Parts of a remote index: its footer is fetched, and the columns that the parts are made of. What is fetched is held
 * against the checksums of its pages, since the seal is that of the whole.
 */
async function readRemote(
  path: string,
  choice: IndexChoice<IndexPart>,
  storage: StorageOptions | undefined,
): Promise<Partial<ShardIndex>> {
  const source = await openSource(path, { first: 'end' }, storage);
  const shown = source.location;
  try {
    // Memory that is not written takes none.
    const bytes = new Uint8Array(source.size);
    if (source.size <= FETCHED_WHOLE_BYTES) {
      await source.readAt(0, bytes);
      return decodeShardIndex(bytes, shown, choice);
    }
    const tail = source.size - TAIL_BYTES;
    await source.readAt(tail, bytes.subarray(tail));
    const footer = tail - new DataView(bytes.buffer).getUint32(tail, true);
    if (footer < 0) throw unusable(shown, 'is not an index that shardtool wrote, or its end is cut off');
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

function describe(json: string | undefined): ColumnNames & { readonly version: number } {
  if (json === undefined) throw new RangeError('it does not say what it holds');
  return JSON.parse(json);
}

function newer(found: number, path: string): VersionError {
  const message = `${path} is an index of version ${found}, this shardtool reads version ${VERSION}; update shardtool.`;
  return new VersionError({ path, found, known: VERSION }, message);
}

function unusable(path: string, what: string, cause?: unknown): ShardIndexError {
  const message = `${path} ${what}; restore it, or have "shardtool verify --fix" make it anew from its shard (for a tar of other software: "shardtool index --overwrite").`;
  return new ShardIndexError({ path }, message, { cause });
}
