import { OptionError, option, sentence } from '@shardtool/base';
import { isRemote, readAhead, type StorageOptions } from '@shardtool/storage';
import { openSource, type Source } from '../source.js';
import { CIFAR } from './cifar/entry.js';
import { FOLDER } from './folder/entry.js';
import { HDF5 } from './hdf5/entry.js';
import { IDX } from './idx/entry.js';
import type { ReadChoice, ShardLayout, TableLayout, WrittenLayout } from './layout.js';
import { LITDATA } from './litdata/entry.js';
import { LMDB } from './lmdb/entry.js';
import { MDS } from './mds/entry.js';
import { MSGPACK } from './msgpack/entry.js';
import { PARQUET } from './parquet/entry.js';
import { TAR } from './tar/entry.js';
import { TFRECORD } from './tfrecord/entry.js';
import { ZIP } from './zip/entry.js';

/**
 * How shards of a layout are recognised and opened. Each layout's folder has one entry, in a file that loads nothing
 * else of the layout.
 */
export interface LayoutEntry {
  /** The extension of its shards' names, with the dot: `.tar`. */
  readonly extension: string;
  /** A shard is a folder with that extension, and this is the file in it: `data.mdb`. Absent if the shard is a file. */
  readonly innerFile?: string;
  /** Whether a file of this name is such a shard. Absent: if its name has the extension. */
  isShard?(name: string): boolean;
  /**
   * Whether a file with these first bytes is such a shard, whatever its name. Absent: the bytes do not identify such
   * shards.
   */
  isBegin?(begin: Buffer): boolean;
  /**
   * The file next to its shards that lists them, and a parser that returns their names in order and throws if the text
   * is not such a list.
   */
  readonly listFile?: string;
  listed?(text: string): Promise<readonly string[]>;
  /** Files of this name next to a shard of another layout with the same stem belong to that shard: our index is one. */
  readonly maybeSidecar?: true;
  /** Other software reads a dataset by its folder, and reads all files in it as shards. */
  readonly isReadByFolder?: true;
  /** Its shards may be in subfolders, by split. */
  readonly isDeep?: true;
  /** The split of a shard, by its name and its folders; undefined if they indicate none. */
  splitOf?(name: string): string | undefined;
  /** New shards are written to this subfolder of their dataset's folder. Absent: to the dataset's folder itself. */
  readonly shardFolder?: string;
  /** The names of new shards, without extension, if other software expects split and number in them. Absent: named like their source. */
  stemOf?(split: string, number: number, count: number): string;
  /** Which commands can write it: all that write shards, or only `convert`, because all columns must be known first. */
  readonly isWritten: boolean | 'by convert';
  load(): Promise<ShardLayout>;
}

/** Every kind of shard. A location with shards of several kinds is opened as the first of them. */
export const LAYOUTS = {
  tar: TAR,
  lmdb: LMDB,
  msgpack: MSGPACK,
  mds: MDS,
  litdata: LITDATA,
  tfrecord: TFRECORD,
  parquet: PARQUET,
  zip: ZIP,
  cifar: CIFAR,
  idx: IDX,
  hdf5: HDF5,
  folder: FOLDER,
};

/** The kinds of shard files. */
export type LayoutName = keyof typeof LAYOUTS;

/** The kinds that `pack` and `convert` write. */
export type WrittenLayoutName = {
  [K in LayoutName]: (typeof LAYOUTS)[K]['isWritten'] extends true ? K : never;
}[LayoutName];

/** The kinds that `convert` alone writes. */
export type TableLayoutName = {
  [K in LayoutName]: (typeof LAYOUTS)[K]['isWritten'] extends 'by convert' ? K : never;
}[LayoutName];

/** All kinds that are written. */
export type OutputLayoutName = WrittenLayoutName | TableLayoutName;

/** Loads a layout on first use. */
export function layoutOf(name: WrittenLayoutName): Promise<WrittenLayout>;
export function layoutOf(name: TableLayoutName): Promise<TableLayout>;
export function layoutOf(name: LayoutName): Promise<ShardLayout>;
export function layoutOf(name: LayoutName): Promise<ShardLayout> {
  return entryOf(name).load();
}

/** The layout with the caller's choices for reading it. Throws {@link OptionError} if the layout has no such choice. */
export async function layoutWith(name: LayoutName, choice: ReadChoice = {}): Promise<ShardLayout> {
  const { links, split, ...columns } = choice;
  const whole = await layoutOf(name);
  const all = split === undefined ? whole : (whole.ofSplit?.(split) ?? whole);
  const layout = links === 'follow' ? all.following : all;
  if (layout === undefined) {
    const message = sentence`Only tars have links to follow, and these shards have the layout ${name}: omit ${option('links')}.`;
    throw new OptionError({}, message);
  }
  if (Object.values(columns).every((column) => column === undefined)) return layout;
  if (layout.choosing !== undefined) return layout.choosing(columns);
  throw new OptionError(
    {},
    `Features can be chosen only for TFRecord and HDF5; shards of the layout ${name} describe themselves.`,
  );
}

/** The layout that shards were written with. Throws {@link OptionError} for a read-only layout. */
export async function writtenLayoutOf(name: LayoutName): Promise<WrittenLayout> {
  const written = WRITTEN_LAYOUTS.find((one) => one === name);
  if (written === undefined)
    throw new OptionError(
      {},
      `shardtool cannot write single samples to shards of the layout ${name}; convert them to tar first.`,
    );
  return layoutOf(written);
}

export function entryOf(name: LayoutName): LayoutEntry {
  return LAYOUTS[name];
}

/** All names, in the order of {@link LAYOUTS}. */
export function layoutNames(): LayoutName[] {
  return Object.keys(LAYOUTS) as LayoutName[];
}

/** The names of the layouts that `pack` writes. */
export const WRITTEN_LAYOUTS: readonly WrittenLayoutName[] = layoutNames().filter(
  (name): name is WrittenLayoutName => entryOf(name).isWritten === true,
);

/** The names of the layouts that `convert` writes. */
export const OUTPUT_LAYOUTS: readonly OutputLayoutName[] = layoutNames().filter(
  (name): name is OutputLayoutName => entryOf(name).isWritten !== false,
);

export function isTableLayout(name: LayoutName): name is TableLayoutName {
  return entryOf(name).isWritten === 'by convert';
}

/** The layout of a shard of this name, which is a file's or, for LMDB, a folder's; null if no layout uses such names. */
export function layoutOfName(name: string): LayoutName | null {
  return layoutNames().find((layout) => isShardName(entryOf(layout), name)) ?? null;
}

export function isShardName(entry: LayoutEntry, name: string): boolean {
  return entry.isShard?.(name) ?? (name.endsWith(entry.extension) && name.length > entry.extension.length);
}

/** The name of a shard without its extension: `000000` for `000000.tar`. A name that no layout knows stays unchanged. */
export function stemOfShard(name: string): string {
  const entry = layoutNames()
    .map(entryOf)
    .find(({ extension }) => name.endsWith(extension));
  return entry === undefined ? name : name.slice(0, -entry.extension.length);
}

/** The name of a shard from the file in a manifest: for LMDB that of the folder, else the file's name without its folder. */
export function shardNameOf(file: string): string {
  // A dataset may have tens of thousands of shards, of which most kinds are single files.
  if (!file.includes('/')) return file;
  const [folder, inner] = file.split('/');
  const isInner = layoutNames().some((layout) => inner !== undefined && entryOf(layout).innerFile === inner);
  return isInner ? folder! : (inner ?? file);
}

/** Like {@link openShard}, for conversion: a shard that is compressed as a whole is decompressed first. */
export async function openToConvert(
  name: LayoutName,
  path: string,
  choice?: ReadChoice,
  storage?: StorageOptions,
): Promise<Source> {
  const { unpack } = await layoutOf(name);
  return opened(path, storage, await layoutWith(name, choice), unpack);
}

/**
 * Opens the file of a shard so that payloads are where its index says. Throws {@link FileError}; for layouts with a
 * view also DamagedShardError and UnsupportedShardError.
 */
export async function openShard(
  name: LayoutName,
  path: string,
  choice?: ReadChoice,
  storage?: StorageOptions,
): Promise<Source> {
  return opened(path, storage, await layoutWith(name, choice));
}

async function opened(
  path: string,
  storage: StorageOptions | undefined,
  { expand }: ShardLayout,
  unpack?: ShardLayout['unpack'],
): Promise<Source> {
  const file = await openSource(path, undefined, storage);
  const packed = isRemote(path) ? readAhead(file) : file;
  const source = unpack === undefined ? packed : await unpack(packed);
  if (expand === undefined) return source;
  try {
    return await expand(source);
  } catch (error) {
    await source.close();
    throw error;
  }
}
