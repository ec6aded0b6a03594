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

/** One shard at a location. */
export interface FoundShard {
  /** The name that messages show: `000000.tar`, `000000.lmdb`. */
  readonly name: string;
  /** The file to read. For LMDB: the file inside the shard's folder. */
  readonly path: string;
  /** The shard's entry in the manifest; null for a shard of other software. */
  readonly record: ManifestShard | null;
  /** The split that the name of the shard or of its folder indicates; absent if neither does. */
  readonly storage?: StorageOptions | undefined;
  /** The split that the name or the folder of the shard contains; absent if there is none. */
  readonly split?: string | undefined;
}

/** The dataset found at a location. */
export interface FoundDataset {
  readonly location: string;
  readonly layout: LayoutName;
  /** Null if other software wrote the shards. */
  readonly manifest: Manifest | null;
  /** The shards in the order of the dataset: that of the manifest, or of their names. */
  readonly shards: readonly FoundShard[];
  /** Layouts of further shards in the folder that were not taken; `folder` if it also has images as single files. */
  readonly others: readonly LayoutName[];
  /** If one split was taken: the splits that exist, and the requested one as the caller spelled it. */
  readonly ofSplit?: { readonly split: string; readonly splits: readonly string[] };
}

/** How many files are examined concurrently. */
const LOOKED_AT_ONCE = 32;

/** The shards that the manifest of the folder `location` names. */
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
    // Remote locations list only files. An LMDB database may also be a file.
    const isFolder =
      entryOf(layout).innerFile !== undefined && !isRemote(place) && (await isInnerFolder(place, layout));
    const shard = isFolder ? foundShard(place, layout) : { path: place, record: null };
    return { ...shard, name, ...(split !== undefined && { split }) };
  });
}

/** The splits inside shards, such as the `train/` and `val/` folders of zip files; an empty list if the layout has none. */
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

/** A single file as a dataset. If the shard is a folder that contains this file, the folder's name is used. */
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

/** The layout of a folder that is itself a shard, by the names of its files and the first bytes of the shard's file. */
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
