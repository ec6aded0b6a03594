import { stat } from 'node:fs/promises';
import path from 'node:path';
import { inLanes } from '@shardtool/base';
import {
  isRemote,
  joinLocation,
  joinLocations,
  openSource,
  type StorageOptions,
  splitLocation,
} from '@shardtool/storage';
import { entryOf, type LayoutName, layoutOf, shardNameOf } from '../layouts/registry.js';
import type { Manifest, ManifestShard } from './manifest.js';
import { isContentOf } from './other-files.js';
import { innerLayoutAmong } from './shard-names.js';

/** One shard at a place. */
export interface FoundShard {
  /** As messages name it: `000000.tar`, `000000.lmdb`. */
  readonly name: string;
  /** The file to read: for LMDB the one inside the shard's folder. */
  readonly path: string;
  /** What the manifest says; null for a shard of other software. */
  readonly record: ManifestShard | null;
  /** How it is asked for, where it is remote. */
  readonly storage?: StorageOptions | undefined;
  /** The split that its name, or the folder that it lies in, says it is of; absent where they say none. */
  readonly split?: string | undefined;
}

/** What there is at a place. */
export interface FoundDataset {
  readonly location: string;
  readonly layout: LayoutName;
  /** Null where other software wrote the shards. */
  readonly manifest: Manifest | null;
  /** In the order of the dataset: that of the manifest, or of their names. */
  readonly shards: readonly FoundShard[];
  /** Layouts of further shards that lie in the folder and were not taken; `folder` where images lie there as files of their own. */
  readonly others: readonly LayoutName[];
  /** The folders of splits that there are, where one of them was taken, and that one's name as it was asked for. */
  readonly ofSplit?: { readonly split: string; readonly splits: readonly string[] };
}

/** Files that are looked at at a time. */
const LOOKED_AT_ONCE = 32;

/** The shards that a manifest in the folder `location` names. */
export function manifestShards(location: string, { shards }: Pick<Manifest, 'shards'>): FoundShard[] {
  const names = shards.map(({ file }) => file);
  const paths = joinLocations(location, names);
  return shards.map((record, i) => ({ name: shardNameOf(record.file), path: paths[i]!, record }));
}

export async function foundShards(
  location: string,
  names: readonly string[],
  layout: LayoutName,
): Promise<FoundShard[]> {
  return inLanes(names, LOOKED_AT_ONCE, async (name) => {
    const split = entryOf(layout).splitOf?.(name);
    const place = joinLocation(location, name);
    // Of remote places the files are listed. A database of LMDB may be a file, too.
    const isFolder =
      entryOf(layout).innerFile !== undefined && !isRemote(place) && (await isInnerFolder(place, layout));
    const shard = isFolder ? foundShard(place, layout) : { path: place, record: null };
    return { ...shard, name, ...(split !== undefined && { split }) };
  });
}

/** The splits that shards have in them, as zip files of `train/` and `val/` have; none where their layout has none. */
export async function splitsInside(
  shards: readonly Pick<FoundShard, 'path' | 'storage'>[],
  layout: LayoutName,
): Promise<string[]> {
  const { ofSplit, partReader } = await layoutOf(layout);
  if (ofSplit === undefined || partReader === undefined) return [];
  const read = partReader();
  const found = await inLanes(shards, LOOKED_AT_ONCE, async ({ path: file, storage }) => {
    const { splits = [] } = await read(() => openSource(file, undefined, storage));
    return splits;
  });
  return [...new Set(found.flat())].sort();
}

/** A file that is a shard. One that is the inside of a folder is called as that. */
export function oneFile(location: string, layout: LayoutName): FoundDataset {
  const { folder, name } = splitLocation(isRemote(location) ? location : path.resolve(location));
  const shown = name === entryOf(layout).innerFile ? splitLocation(folder).name : name;
  return { location, layout, manifest: null, shards: [{ name: shown, path: location, record: null }], others: [] };
}

export function oneShard(location: string, layout: LayoutName): FoundDataset {
  return { location, layout, manifest: null, shards: [foundShard(location, layout)], others: [] };
}

export function foundShard(location: string, layout: LayoutName): FoundShard {
  const { innerFile } = entryOf(layout);
  const file = innerFile === undefined ? location : joinLocation(location, innerFile);
  return { name: splitLocation(location).name, path: file, record: null };
}

/** The layout of which a folder with these files is a shard, by the names of its files and by what the shard's file begins with. */
export async function innerLayout(
  location: string,
  names: readonly string[],
  layout: LayoutName | undefined,
): Promise<LayoutName | null> {
  const inner = innerLayoutAmong(names, layout);
  if (inner === undefined) return null;
  return (await isContentOf(inner, path.join(location, entryOf(inner).innerFile!))) ? inner : null;
}

/** Whether a folder is itself a shard. */
export async function isInnerFolder(location: string, layout: LayoutName): Promise<boolean> {
  const { innerFile } = entryOf(layout);
  if (innerFile === undefined) return false;
  return (await stat(path.join(location, innerFile)).catch(() => null))?.isFile() ?? false;
}
