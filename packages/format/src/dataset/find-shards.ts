import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  expandBraces,
  isRemote,
  joinLocation,
  joinLocations,
  localPathOf,
  openStorage,
  splitLocation,
} from '@shardtool/storage';
import { FileError, UnfinishedPackError } from '../errors.js';
import { holdsImages } from '../layouts/folder/list.js';
import {
  entryOf,
  isShardName,
  type LayoutEntry,
  type LayoutName,
  layoutNames,
  layoutOfName,
  shardNameOf,
} from '../layouts/registry.js';
import { besidePath } from './beside.js';
import { MANIFEST_FILE, type Manifest, type ManifestShard, readManifest } from './manifest.js';

/** The note of a pack that is under way, was interrupted, or has made what lies beside it. */
export const PACK_NOTE_FILE = 'pack.json';

/** One shard at a place. */
export interface FoundShard {
  /** As messages name it: `000000.tar`, `000000.lmdb`. */
  readonly name: string;
  /** The file to read: for LMDB the one inside the shard's folder. */
  readonly path: string;
  /** What the manifest says; null for a shard of other software. */
  readonly record: ManifestShard | null;
}

/** What there is at a place. */
export interface FoundDataset {
  readonly location: string;
  readonly layout: LayoutName;
  /** Null where other software wrote the shards. */
  readonly manifest: Manifest | null;
  /** In the order of the dataset: that of the manifest, or of their names. */
  readonly shards: readonly FoundShard[];
  /** Layouts of further shards that lie in the folder and were not taken. */
  readonly others: readonly LayoutName[];
}

/** What is looked for at a place. */
export interface FindOptions {
  /** Which shards, where a folder has those of several layouts. */
  readonly layout?: LayoutName | undefined;
  /** Whether images may lie there as files of their own: then there are no shards, and the layout is `folder`. */
  readonly folders?: boolean;
}

/**
 * Finds the shards of a place: what a manifest in it names, else all shards of one layout by their names, or the one shard that it is. A file
 * whose name says nothing is taken for a tar. Throws
 * {@link FileError} where there is nothing, and what {@link readManifest} throws, which is UnfinishedPackError for a folder without shards.
 */
export async function findShards(at: string, options: FindOptions = {}): Promise<FoundDataset> {
  const { layout, folders = false } = options;
  const location = localPathOf(at);
  if (location === null) return findRemote(at, layout);
  const found = await stat(location).catch((cause: Error) => {
    throw new FileError({ path: location }, `${location} cannot be opened (${cause.message}).`, { cause });
  });
  const single = layout ?? layoutOfName(path.basename(location));
  if (!found.isDirectory()) return oneShard(location, single ?? 'tar');
  if (single !== null && (await isInnerFolder(location, single))) return oneShard(location, single);
  const names = (await readdir(location)).sort();
  if (!names.includes(MANIFEST_FILE) && !names.includes(PACK_NOTE_FILE)) {
    const layouts = layoutNames().filter((name) => names.some((file) => isShardName(entryOf(name), file)));
    const [taken, ...others] = layout === undefined ? layouts : [layout, ...layouts.filter((name) => name !== layout)];
    const there = taken === undefined ? [] : names.filter((name) => isShardName(entryOf(taken), name));
    if (there.length > 0) {
      const shards = await listedOf(location, entryOf(taken!), names, there);
      return {
        location,
        layout: taken!,
        manifest: null,
        shards: shards.map((name) => foundShard(path.join(location, name), taken!)),
        others,
      };
    }
  }
  const isPack = names.includes(MANIFEST_FILE) || names.includes(PACK_NOTE_FILE);
  if (!isPack && (await holdsImages(location))) {
    if (folders) return { location, layout: 'folder', manifest: null, shards: [], others: [] };
    throw imagesAlone(location);
  }
  const manifest = await readManifest(location);
  return { location, layout: manifest.format, manifest, shards: manifestShards(location, manifest), others: [] };
}

function imagesAlone(path: string): FileError {
  const message = `${path} holds images as files of their own and no shards, so there is nothing to work on: pack it first, with "shardtool pack".`;
  return new FileError({ path }, message);
}

/** The shards that a manifest in the folder `location` names. */
export function manifestShards(location: string, { shards }: Pick<Manifest, 'shards'>): FoundShard[] {
  const names = shards.map(({ file }) => file);
  const paths = joinLocations(location, names);
  return shards.map((record, i) => ({ name: shardNameOf(record.file), path: paths[i]!, record }));
}

/** The index of a shard of a pack. */
export function indexPathOf(shardPath: string): string {
  return besidePath('index', shardPath);
}

/**
 * What there is at a remote place: the shard that its name says it is, what a manifest in it names, or all shards that a list of it has.
 */
async function findRemote(location: string, layout?: LayoutName): Promise<FoundDataset> {
  const single = layoutOfName(splitLocation(location).name);
  if (single !== null) return oneShard(location, layout ?? single);
  try {
    const manifest = await readManifest(location);
    return { location, layout: manifest.format, manifest, shards: manifestShards(location, manifest), others: [] };
  } catch (error) {
    if (!(error instanceof UnfinishedPackError)) throw error;
    const names: string[] = [];
    const storage = await openStorage(location);
    try {
      for await (const { name } of storage.list('')) names.push(name);
    } catch (cause) {
      // Plain HTTP has no lists: what is known is that there is no manifest.
      if (cause instanceof FileError) throw error;
      throw cause;
    }
    const layouts = layoutNames().filter((name) => names.some((file) => isShardName(entryOf(name), file)));
    const [taken, ...others] = layout === undefined ? layouts : [layout, ...layouts.filter((name) => name !== layout)];
    const shards = taken === undefined ? [] : names.filter((name) => isShardName(entryOf(taken), name)).sort();
    if (shards.length === 0 || names.includes(PACK_NOTE_FILE)) throw error;
    const found = shards.map((name) => foundShard(joinLocation(location, name), taken!));
    return { location, layout: taken!, manifest: null, shards: found, others };
  }
}

/** The shards in the order of the list that lies beside them, if there is one. Throws {@link FileError} where one that it names is not there. */
async function listedOf(
  folder: string,
  { listFile, listed }: LayoutEntry,
  names: readonly string[],
  there: readonly string[],
): Promise<readonly string[]> {
  if (listFile === undefined || listed === undefined || !names.includes(listFile)) return there;
  const file = path.join(folder, listFile);
  let shards: readonly string[];
  try {
    shards = await listed(await readFile(file, 'utf8'));
  } catch (cause) {
    const message = `${file} cannot be read as the list of the shards beside it; fetch it again, or move it away to take all shards by their names.`;
    throw new FileError({ path: file }, message, { cause });
  }
  const missing = shards.filter((name) => !there.includes(name));
  if (missing.length === 0) return shards;
  const more = missing.length === 1 ? '' : ` and ${missing.length - 1} more`;
  const message = `${file} names ${missing[0]}${more}, which ${missing.length === 1 ? 'is' : 'are'} not there; fetch all shards, or move the list away to take those that are there.`;
  throw new FileError({ path: file }, message);
}

/** The locations that are meant: each `{000..146}` stands for its numbers, unless there is a file of that very name. */
export async function meantLocations(location: string): Promise<string[]> {
  const choices = expandBraces(location);
  if (choices.length === 1 || (!isRemote(location) && (await stat(location).catch(() => null)) !== null))
    return [location];
  return choices;
}

function oneShard(location: string, layout: LayoutName): FoundDataset {
  return { location, layout, manifest: null, shards: [foundShard(location, layout)], others: [] };
}

function foundShard(location: string, layout: LayoutName): FoundShard {
  const { innerFile } = entryOf(layout);
  const file = innerFile === undefined ? location : joinLocation(location, innerFile);
  return { name: splitLocation(location).name, path: file, record: null };
}

/** Whether a folder is itself a shard. */
async function isInnerFolder(location: string, layout: LayoutName): Promise<boolean> {
  const { innerFile } = entryOf(layout);
  if (innerFile === undefined) return false;
  return (await stat(path.join(location, innerFile)).catch(() => null))?.isFile() ?? false;
}
