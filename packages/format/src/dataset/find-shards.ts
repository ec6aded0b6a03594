import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  didYouMean,
  FileError,
  FileNotFoundError,
  inLanes,
  OptionError,
  openErrorOf,
  reasonOf,
  UnfinishedPackError,
} from '@shardtool/base';
import {
  canBeListed,
  expandBraces,
  isRemote,
  joinLocation,
  localPathOf,
  openStorage,
  type StorageOptions,
  shownLocation,
  splitLocation,
} from '@shardtool/storage';
import { isImageExtension } from '../image/kinds.js';
import { holdsImages } from '../layouts/folder/list.js';
import {
  entryOf,
  isShardName,
  type LayoutEntry,
  type LayoutName,
  layoutNames,
  layoutOfName,
} from '../layouts/registry.js';
import { canonicalSplit, datasetFolderOf } from '../layouts/split-name.js';
import {
  type FoundDataset,
  foundShard,
  foundShards,
  innerLayout,
  isInnerFolder,
  manifestShards,
  oneFile,
  oneShard,
} from './found-shards.js';
import { MANIFEST_FILE, readManifest } from './manifest.js';
import { filesOfContent, hintAtContent, layoutOfContent } from './other-files.js';
import { foldersOfShards, innerLayoutAmong, shardsAmong, splitFolders, withoutIndexes } from './shard-names.js';
import { sidecarPath } from './sidecars.js';
import { readVersion } from './versions.js';

/**
 * The note of a pack. It says that the pack is running or was interrupted, or names the files that the pack has
 * written.
 */
export const PACK_NOTE_FILE = 'pack.json';

/** Number of locations of a pattern that are looked at together. */
const FOUND_AT_ONCE = 16;

/** Options of {@link findShards}. */
export interface FindOptions {
  /** The layout to take if a folder has shards of several layouts. */
  readonly layout?: LayoutName | undefined;
  /** Whether the folder may hold images as single files. If it does and has no shards, the layout is `folder`. */
  readonly folders?: boolean;
  /** How to access a remote location. Options that are not given come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** The split to open if the folder has one dataset per split, as `pack` writes them with `splits`. */
  readonly split?: string | undefined;
  /** An earlier version of the dataset: its identity, or a unique beginning of it. Default: the current version. */
  readonly version?: string | undefined;
}

/**
 * Finds the shards at a location: those that its manifest names, else all shards of one layout by name, or the single
 * shard at that path. If the name of a file does not show its layout, the first bytes do, or else it is read as a tar.
 * A pattern with braces (`train-{000..146}.tar`) stands for the shards of all its locations. Throws OptionError if the
 * bytes belong to no known layout or the shards of a pattern are of two layouts, {@link FileError} if nothing is found,
 * UnfinishedPackError for a folder without shards, ManifestError for a dataset.json that has changed, and VersionError
 * if a newer version wrote it.
 */
export async function findShards(at: string, options: FindOptions = {}): Promise<FoundDataset> {
  const found = await findAt(at, options);
  const { storage } = options;
  return storage === undefined ? found : { ...found, shards: found.shards.map((shard) => ({ ...shard, storage })) };
}

async function findAt(at: string, options: FindOptions): Promise<FoundDataset> {
  const { layout, folders = false, version } = options;
  if (version !== undefined) {
    const manifest = await readVersion(localPathOf(at) ?? at, version, options.storage);
    const shards = manifestShards(localPathOf(at) ?? at, manifest);
    return { location: localPathOf(at) ?? at, layout: manifest.format, manifest, shards, others: [] };
  }
  const meant = await meantLocations(at);
  if (meant.length > 1) return findAll(at, meant, options);
  if (layout !== undefined && !layoutNames().includes(layout)) {
    const message = `Unknown layout "${layout}"${didYouMean(layout, layoutNames()) || '.'} Choose one of ${layoutNames().join(', ')}.`;
    throw new OptionError({ path: at }, message);
  }
  const location = localPathOf(at);
  if (location === null) return findRemote(at, options);
  const found = await stat(location).catch((cause: Error) => {
    const Kind = openErrorOf(cause);
    throw new Kind(
      { path: location },
      `${location} cannot be opened: ${reasonOf(cause)}. Give a folder of shards, a shard file or a URL.`,
      { cause },
    );
  });
  const single = layout ?? layoutOfName(path.basename(location));
  if (!found.isDirectory()) return oneFile(location, single ?? (await layoutOfContent(location)));
  if (single !== null && (await isInnerFolder(location, single))) return oneShard(location, single);
  const names = (await readdir(location)).sort();
  const isAskedFolder = layout === 'folder' && folders;
  if (!names.includes(MANIFEST_FILE) && !names.includes(PACK_NOTE_FILE) && !isAskedFolder) {
    const { taken, there, others } = shardsAmong(names, layout);
    const inner = await innerLayout(location, names, layout);
    if (inner !== null) return { ...oneShard(location, inner), others: others.filter((name) => name !== inner) };
    if (there.length > 0) {
      const shards = await listedOf(location, entryOf(taken!), names, there);
      const isFolder = folders && (await holdsImages(location, (name) => layoutOfName(name) !== null));
      const all: readonly LayoutName[] = isFolder ? [...others, 'folder'] : others;
      return {
        location,
        layout: taken!,
        manifest: null,
        shards: await foundShards(location, shards, taken!),
        others: all,
      };
    }
    const deep = await findBelow(location, options, await namesBelow(location));
    if (deep !== null) return deep;
    const byContent = layout === undefined ? [] : await filesOfContent(location, names, layout);
    if (byContent.length > 0) {
      return {
        location,
        layout: layout!,
        manifest: null,
        shards: await foundShards(location, byContent, layout!),
        others,
      };
    }
  }
  const isPack = names.includes(MANIFEST_FILE) || names.includes(PACK_NOTE_FILE);
  if (!isPack && (await holdsImages(location))) {
    if (folders) return { location, layout: 'folder', manifest: null, shards: [], others: [] };
    throw imagesAlone(location);
  }
  const manifest = await readManifest(location).catch(async (error) => {
    throw (isPack ? null : await hintAtContent(location, names)) ?? error;
  });
  return { location, layout: manifest.format, manifest, shards: manifestShards(location, manifest), others: [] };
}

/** The shards of all locations that a pattern stands for, as one dataset. */
async function findAll(pattern: string, meant: readonly string[], options: FindOptions): Promise<FoundDataset> {
  const found = await inLanes(meant, FOUND_AT_ONCE, (location) => findAt(location, { ...options, folders: false }));
  const { layout } = found[0]!;
  const shards = found.flatMap((one) => one.shards);
  const other = found.find((one) => one.layout !== layout);
  if (other !== undefined) {
    const message = `${shownLocation(pattern)} stands for shards of two formats, ${layout} and ${other.layout}: give a pattern for each.`;
    throw new OptionError({ path: pattern }, message);
  }
  return { location: pattern, layout, manifest: null, shards, others: [] };
}

function imagesAlone(path: string): FileError {
  const message = `${shownLocation(path)} holds images as single files and no shards. Pack it first, with "shardtool pack".`;
  return new FileError({ path: shownLocation(path) }, message);
}

/** The path of the index of a packed shard. */
export function indexPathOf(shardPath: string): string {
  return sidecarPath('index', shardPath);
}

/**
 * Finds the shards of a remote location: the shard that the name points to, those that its manifest names, or all
 * shards in its listing.
 */
async function findRemote(location: string, options: FindOptions): Promise<FoundDataset> {
  const { layout } = options;
  if (/^[a-z0-9+.-]+:\/+$/i.test(location)) {
    const message = `${location} does not name a bucket or host: give the whole location, such as ${location.replace(/\/*$/, '')}//NAME/PATH.`;
    throw new OptionError({ path: location }, message);
  }
  const { name: last } = splitLocation(location);
  const inner = layoutNames().find((name) => entryOf(name).innerFile === last);
  if (inner !== undefined) return oneFile(location, layout ?? inner);
  const single = layoutOfName(last);
  if (single !== null) return oneShard(location, layout ?? single);
  try {
    const manifest = await readManifest(location, options.storage);
    const shards = manifestShards(location, manifest);
    return { location, layout: manifest.format, manifest, shards, others: [] };
  } catch (error) {
    if (!(error instanceof UnfinishedPackError)) throw error;
    const names: string[] = [];
    const storage = await openStorage(location, options.storage);
    try {
      for await (const { name } of storage.list('')) names.push(name);
    } catch (cause) {
      // Without a listing, the only thing known is that there is no manifest.
      if (!canBeListed(location)) throw error;
      throw cause;
    }
    if (names.includes(PACK_NOTE_FILE)) throw error;
    const { taken, there, others } = shardsAmong(names.sort(), layout);
    const inFolder = innerLayoutAmong(names, layout);
    if (inFolder !== undefined) return { ...oneShard(location, inFolder), others };
    if (there.length > 0) {
      return { location, layout: taken!, manifest: null, shards: await foundShards(location, there, taken!), others };
    }
    const below: string[] = [];
    for await (const { name } of storage.list('', { deep: true })) below.push(name);
    if (below.length === 0) throw nothingThere(location);
    const folders = shardsAmong(shardFolders(below), layout);
    if (folders.there.length > 0) {
      const shards = folders.there.map((name) => ({
        ...foundShard(joinLocation(location, name), folders.taken!),
        name,
      }));
      return { location, layout: folders.taken!, manifest: null, shards, others: folders.others };
    }
    const deep = await findBelow(location, options, below);
    if (deep !== null) return deep;
    if (below.some((name) => isImageExtension(name.slice(name.lastIndexOf('.') + 1)))) throw imagesAlone(location);
    throw error;
  }
}

/** Shards that are folders. An object store lists only the files inside them. */
function shardFolders(names: readonly string[]): string[] {
  const inner = layoutNames().flatMap((name) => entryOf(name).innerFile ?? []);
  const folders = names.filter((name) => inner.includes(name.split('/')[1]!) && name.split('/').length === 2);
  return folders.map((name) => name.split('/')[0]!);
}

function nothingThere(location: string): FileNotFoundError {
  const path = shownLocation(location);
  return new FileNotFoundError({ path }, `Nothing found at ${path}: check the location.`);
}

/** How many folders deep to look for shards: `CONFIG/train/0000.parquet`. */
const DEEPEST = 3;
const MOST_NAMES = 100_000;

/**
 * Finds the shards in subfolders: those of the requested split if each split has its own dataset, else those of layouts
 * that use subfolders. Throws {@link OptionError} if they belong to several datasets.
 */
async function findBelow(
  location: string,
  options: FindOptions,
  names: readonly string[],
): Promise<FoundDataset | null> {
  const { layout, split } = options;
  const splits = splitFolders(names);
  if (splits.length > 0) {
    const folder = folderOfSplit(location, splits, split);
    const found = await findShards(joinLocation(location, folder), { ...options, split: undefined });
    return { ...found, ofSplit: { split: split!, splits } };
  }
  const deep = layoutNames().filter((name) => entryOf(name).isDeep && (layout ?? name) === name);
  for (const taken of deep) {
    const named = names.filter((name) => isShardName(entryOf(taken), name) && name.split('/').length <= DEEPEST + 1);
    const there = entryOf(taken).maybeSidecar === undefined ? named : withoutIndexes(named, taken, names);
    if (there.length === 0) continue;
    const datasets = [...new Set(there.map(datasetFolderOf))].sort();
    if (datasets.length > 1) throw severalDatasets(location, datasets, 'give the folder of one of them');
    return {
      location,
      layout: taken,
      manifest: null,
      shards: await foundShards(location, there.sort(), taken),
      others: [],
    };
  }
  const databases = foldersOfShards(names, layout);
  if (databases.length > 0) throw severalDatasets(location, databases, 'give the folder of one of them');
  return null;
}

/** The folder of the requested split. Throws {@link OptionError} if no split is requested, or if it does not exist. */
function folderOfSplit(location: string, folders: readonly string[], split: string | undefined): string {
  if (split === undefined) {
    throw severalDatasets(location, folders, 'give the folder of one of them, or its name as the split');
  }
  const folder = folders.includes(split)
    ? split
    : folders.find((name) => canonicalSplit(name) === canonicalSplit(split));
  if (folder !== undefined) return folder;
  const message = `No split "${split}" in ${location}; it has ${folders.join(', ')}.`;
  throw new OptionError({ path: location }, message);
}

function severalDatasets(location: string, folders: readonly string[], remedy: string): OptionError {
  const shown = `${folders.slice(0, 5).join(', ')}${folders.length > 5 ? ', ...' : ''}`;
  const message =
    folders.length === 1
      ? `${location} contains a dataset (${shown}): give the folder of that dataset.`
      : `${location} contains several datasets (${shown}): ${remedy}.`;
  return new OptionError({ path: location }, message);
}

/** The files below a folder, without those in folders whose names begin with a dot. */
async function namesBelow(location: string): Promise<string[]> {
  const names: string[] = [];
  const open = [''];
  for (let folder = open.shift(); folder !== undefined && names.length < MOST_NAMES; folder = open.shift()) {
    const entries = await readdir(path.join(location, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (entry.name.startsWith('.')) continue;
      const name = `${folder}${entry.name}`;
      if (!entry.isDirectory()) names.push(name);
      else if (name.split('/').length <= DEEPEST) open.push(`${name}/`);
    }
  }
  return names;
}

/** The shards in the order of the list file next to them, if there is one. Throws {@link FileError} if a listed shard is missing. */
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
    const message = `${file} cannot be read as the list of its shards. Fetch it again, or move it away to take all shards by name.`;
    throw new FileError({ path: file }, message, { cause });
  }
  const missing = shards.filter((name) => !there.includes(name));
  if (missing.length === 0) return shards;
  const more = missing.length === 1 ? '' : ` and ${missing.length - 1} more`;
  const message = `${file} names ${missing[0]}${more}, which ${missing.length === 1 ? 'does' : 'do'} not exist. Fetch all shards, or move the list away to take those that exist.`;
  throw new FileError({ path: file }, message);
}

/**
 * The locations that a pattern stands for: each `{000..146}` is expanded to its numbers, unless a file has exactly that
 * name.
 */
export async function meantLocations(location: string): Promise<string[]> {
  const choices = expandBraces(location);
  if (choices.length === 1 || (!isRemote(location) && (await stat(location).catch(() => null)) !== null))
    return [location];
  return choices;
}
