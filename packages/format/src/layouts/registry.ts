import { OptionError } from '@shardtool/base';
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

/** How shards of a layout are told and opened. Each layout's folder has one, in a file that loads nothing else of it. */
export interface LayoutEntry {
  /** The ending of its shards' names, with the dot: `.tar`. */
  readonly extension: string;
  /** A shard is a folder of that ending, and this is the file in it: `data.mdb`. Absent where the shard is the file. */
  readonly innerFile?: string;
  /** Whether a file of this name is such a shard. Absent: its name has the ending. */
  isShard?(name: string): boolean;
  /** Whether a file that begins like this is such a shard, whatever its name. Absent: the bytes do not tell it. */
  isBegin?(begin: Buffer): boolean;
  /** The file beside its shards that lists them, and what it says: their names in their order. Throws where it says nothing of the kind. */
  readonly listFile?: string;
  listed?(text: string): Promise<readonly string[]>;
  /** Files of this name beside a shard of another layout with the same stem belong to that: our index is one. */
  readonly maybeSidecar?: true;
  /** Other software reads a dataset by its folder, and takes all files in it for shards. */
  readonly isReadByFolder?: true;
  /** Its shards may lie in folders below, by split. */
  readonly isDeep?: true;
  /** The split that a shard is of, by its name and the folders that it lies in; undefined where they say none. */
  splitOf?(name: string): string | undefined;
  /** Shards that are written lie in this folder below that of their dataset. Absent: in the dataset's own. */
  readonly shardFolder?: string;
  /** What new shards are called, without their ending, where other software wants to know split and number by it. Absent: as what they are made of. */
  stemOf?(split: string, number: number, count: number): string;
  /** Who writes it: everything that writes shards, or `convert` alone, since all columns are to be known first. */
  readonly isWritten: boolean | 'by convert';
  load(): Promise<ShardLayout>;
}

/** Every kind of shard. A place that has shards of several is taken for the first of them. */
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

/** Loads a layout when it is first asked for. */
export function layoutOf(name: WrittenLayoutName): Promise<WrittenLayout>;
export function layoutOf(name: TableLayoutName): Promise<TableLayout>;
export function layoutOf(name: LayoutName): Promise<ShardLayout>;
export function layoutOf(name: LayoutName): Promise<ShardLayout> {
  return entryOf(name).load();
}

/** The layout as a person has chosen that it is read. Throws {@link OptionError} where there is nothing to choose. */
export async function layoutWith(name: LayoutName, choice: ReadChoice = {}): Promise<ShardLayout> {
  const { links, split, ...columns } = choice;
  const whole = await layoutOf(name);
  const all = split === undefined ? whole : (whole.ofSplit?.(split) ?? whole);
  const layout = links === 'follow' ? all.following : all;
  if (layout === undefined) {
    const message = `Links are followed in tars alone, and shards of the layout ${name} have none: leave "links" (--links) out.`;
    throw new OptionError({}, message);
  }
  if (Object.values(columns).every((column) => column === undefined)) return layout;
  if (layout.choosing !== undefined) return layout.choosing(columns);
  throw new OptionError(
    {},
    `Features are chosen of TFRecord and HDF5 alone; shards of the layout ${name} are read as they say.`,
  );
}

/** The layout that shards were written with. Throws {@link OptionError} for one that is only read. */
export async function writtenLayoutOf(name: LayoutName): Promise<WrittenLayout> {
  const written = WRITTEN_LAYOUTS.find((one) => one === name);
  if (written === undefined)
    throw new OptionError(
      {},
      `Shards of the layout ${name} are not written sample by sample; convert them to tar first.`,
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

/** The names of those that are written. */
export const WRITTEN_LAYOUTS: readonly WrittenLayoutName[] = layoutNames().filter(
  (name): name is WrittenLayoutName => entryOf(name).isWritten === true,
);

/** The names of those that `convert` writes. */
export const OUTPUT_LAYOUTS: readonly OutputLayoutName[] = layoutNames().filter(
  (name): name is OutputLayoutName => entryOf(name).isWritten !== false,
);

export function isTableLayout(name: LayoutName): name is TableLayoutName {
  return entryOf(name).isWritten === 'by convert';
}

/** The layout of a shard of this name, which is a file's or, for LMDB, a folder's; null where no layout has such names. */
export function layoutOfName(name: string): LayoutName | null {
  return layoutNames().find((layout) => isShardName(entryOf(layout), name)) ?? null;
}

export function isShardName(entry: LayoutEntry, name: string): boolean {
  return entry.isShard?.(name) ?? (name.endsWith(entry.extension) && name.length > entry.extension.length);
}

/** What a shard is called without its ending: `000000` for `000000.tar`. A name that no layout knows stays as it is. */
export function stemOfShard(name: string): string {
  const entry = layoutNames()
    .map(entryOf)
    .find(({ extension }) => name.endsWith(extension));
  return entry === undefined ? name : name.slice(0, -entry.extension.length);
}

/** What a shard is called whose file a manifest names: for LMDB the folder in which the file lies, else the file without a folder. */
export function shardNameOf(file: string): string {
  const [folder, inner] = file.split('/');
  const isInner = layoutNames().some((layout) => inner !== undefined && entryOf(layout).innerFile === inner);
  return isInner ? folder! : (inner ?? file);
}

/** The same for conversion: a shard that is compressed as a whole is unpacked first. */
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
 * Opens the file of a shard so that payloads lie where its index says. Throws {@link FileError}; of layouts that look into it also
 * DamagedShardError and UnsupportedShardError.
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
