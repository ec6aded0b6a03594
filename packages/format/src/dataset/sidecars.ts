import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, open, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { FileError, makeFolder, removeAbandoned } from '@shardtool/base';
import { entryAt, isRemote, joinLocation, type StorageOptions, shownLocation, splitLocation } from '@shardtool/storage';
import {
  entryOf,
  type LayoutEntry,
  type LayoutName,
  layoutNames,
  layoutOfName,
  stemOfShard,
} from '../layouts/registry.js';
import { MANIFEST_FILE } from './manifest.js';

/** One kind of file that lies beside shards: its name, which shards have it, and how ours is told. */
export interface SidecarKind {
  /** One a shard, or one for all shards of a folder. */
  readonly of: 'shard' | 'folder';
  /** Only tars have one. */
  readonly isOfTars?: true;
  /** Found out about shards that are there: no pack is asked for it, and none notes it. */
  readonly isFoundOut?: true;
  /** Its name, from the name of the shard (`000000.tar`, `000000.lmdb`); that of a folder is always the same. */
  fileName(shard: string): string;
  /** Where ours lies when something of other software has that name. Absent: it has to have the one name, or is not made. */
  otherName?(shard: string): string;
  /**
   * Text near the end of every such file that shardtool wrote. Absent where other software writes the very same kind:
   * then ours are those that the pack's note names.
   */
  readonly mark?: string;
}

/**
 * Every kind of file beside shards. The index is written always, each other kind where it is asked for, which pack.json
 * notes. For all of them: a pack does not begin where such a name is taken; `--overwrite` and `--restart` remove only what
 * shardtool wrote; `verify --fix` makes those of a repaired shard anew, and keeps the old ones in quarantine; and `convert`
 * takes none over, but makes those of the new shards. What is found out of shards later on is in the way of nothing, goes with its
 * shard, and counts only as long as it is of the bytes that lie there.
 */
export const SIDECARS = {
  /** Our index. */
  index: {
    of: 'shard',
    // An index is Parquet itself, so beside a Parquet shard it has another extension.
    fileName: (shard) => `${stemOfShard(shard)}.${isReadByFolder(shard) ? 'shardtool' : 'parquet'}`,
    otherName: (shard) => `${shard}.shardtool`,
    mark: 'shardtool.index',
  },
  /** For webdataset's wids, whose own tool (`widsindex create`) writes the same. */
  wids: {
    of: 'folder',
    isOfTars: true,
    fileName: () => 'shardindex.json',
  },
  /** For `fn.readers.webdataset` of NVIDIA DALI, whose own tool (`wds2idx`) writes the same. */
  dali: {
    of: 'shard',
    isOfTars: true,
    fileName: (shard) => `${stemOfShard(shard)}.idx`,
  },
  /** Where the MCUs of baseline JPEGs begin, so that crops are decoded alone. */
  crops: {
    of: 'shard',
    fileName: (shard) => `${stemOfShard(shard)}.crops`,
    otherName: (shard) => `${shard}.crops`,
    mark: 'shardtool.crops',
  },
  /** What `shardtool inspect` found out about the samples. */
  inspection: {
    of: 'shard',
    isFoundOut: true,
    fileName: (shard) => `${stemOfShard(shard)}.inspect`,
    otherName: (shard) => `${shard}.inspect`,
    mark: 'shardtool.inspect',
  },
} satisfies Record<string, SidecarKind>;

export type SidecarName = keyof typeof SIDECARS;

/** Those that are made with a shard, or of it when `shardtool index` is asked: a pack notes them. */
export type DerivedSidecar = Exclude<SidecarName, 'inspection'>;

/** All of them, in the order of the table. */
export const SIDECAR_NAMES = Object.keys(SIDECARS) as SidecarName[];

/** Those of {@link DerivedSidecar}. */
export const DERIVED_SIDECARS = SIDECAR_NAMES.filter(
  (name): name is DerivedSidecar => kindOf(name).isFoundOut !== true,
);

/** Who wrote the file at a path. */
export type Owner = 'nobody' | 'shardtool' | 'other';

/** Where the pieces of a mark stand: the footer of an index is a few KiB. */
const MARK_BYTES = 1 << 20;

function kindOf(name: SidecarName): SidecarKind {
  return SIDECARS[name];
}

/** Whether shards of this layout can have such a file. */
export function isOfLayout(kind: SidecarName, layout: LayoutName): boolean {
  return layout === 'tar' || kindOf(kind).isOfTars !== true;
}

/** Those of these kinds that a shard has for itself: their paths, as {@link sidecarPath} gives them. */
export function sidecarOfShard(shardPath: string, kinds: readonly SidecarName[] = SIDECAR_NAMES): string[] {
  return kinds.filter((kind) => kindOf(kind).of === 'shard').map((kind) => sidecarPath(kind, shardPath));
}

/** Those of these kinds that all shards of a folder have together: their names. */
export function sidecarPaths(kinds: readonly SidecarName[]): string[] {
  return kinds.filter((kind) => kindOf(kind).of === 'folder').map((kind) => kindOf(kind).fileName(''));
}

/**
 * The path of a file beside a shard, as `pack` writes it: `shards/000000.parquet` for `shards/000000.tar` and for
 * `shards/000000.lmdb/data.mdb`. If shards have a folder to themselves, the file is in the folder above, that of the
 * dataset: `train.shardtool` for `data/train.parquet`. In the folder of a pack the file is ours, since a pack does not begin
 * where the name is taken. For shards of other software, {@link findSidecars} and {@link placeSidecar} give the path of ours.
 */
export function sidecarPath(kind: SidecarName, shardPath: string): string {
  const { folder, shard } = splitShardPath(shardPath);
  return joinLocation(datasetFolder(folder, shard), kindOf(kind).fileName(shard));
}

/**
 * The path where earlier builds wrote a file beside a shard of a pack: among the shards, even if these have a folder to
 * themselves. Null if that is where the file is written today.
 */
export function earlierSidecarPath(kind: SidecarName, shardPath: string): string | null {
  const { folder, shard } = splitShardPath(shardPath);
  const earlier = joinLocation(folder, kindOf(kind).fileName(shard));
  return earlier === sidecarPath(kind, shardPath) ? null : earlier;
}

/** The path of a file beside a shard of a pack: {@link sidecarPath}, or the earlier path if the file is there. */
export async function packedSidecarPath(
  kind: SidecarName,
  shardPath: string,
  storage?: StorageOptions,
): Promise<string> {
  const place = sidecarPath(kind, shardPath);
  const earlier = earlierSidecarPath(kind, shardPath);
  const exists = async (location: string): Promise<boolean> => (await entryAt(location, storage)) !== null;
  return earlier === null || (await exists(place)) || !(await exists(earlier)) ? place : earlier;
}

/** A file of ours beside a shard of other software; null where there is none, or where the shard is newer and may be another one. */
export async function findSidecars(
  kind: SidecarName,
  shardPath: string,
  storage?: StorageOptions,
): Promise<string | null> {
  const { folder, shard } = splitShardPath(shardPath);
  // Nothing of ours lies beside what is remote: where this machine keeps nothing for its folder, no request is made.
  const side = sideFolder(folder);
  if (isRemote(shardPath) && (side === null || (await stat(side).catch(() => null)) === null)) return null;
  const packed = isRemote(shardPath) ? null : await stat(shardPath).catch(() => null);
  for (const file of [...(await placesOf(kind, shardPath, storage)), ...earlierPlaces(kind, folder, shard)]) {
    const made = await stat(file).catch(() => null);
    if (made === null || (packed !== null && made.mtimeMs < packed.mtimeMs)) continue;
    if ((await ownerOf(kind, file)) === 'shardtool') return file;
  }
  return null;
}

/**
 * Where a file of ours is to be written beside a shard of other software: under its name, under its other name where
 * something else has that, or in {@link sideFolder} (which is made) where nothing can be written beside the shard. Throws
 * {@link FileError} if both names are taken, if no other name would do, or if neither folder can be written. `isNoted`:
 * pack.json names it.
 */
export async function placeSidecar(
  kind: SidecarName,
  shardPath: string,
  isNoted = false,
  storage?: StorageOptions,
): Promise<string> {
  const { folder } = splitShardPath(shardPath);
  const side = sideFolder(folder);
  let isTaken = false;
  for (const file of await placesOf(kind, shardPath, storage)) {
    if ((await ownerOf(kind, file, isNoted)) === 'other') {
      isTaken = true;
      continue;
    }
    const target = path.dirname(file);
    if (await (target === side ? canBeMade(target) : isWritable(target))) return file;
  }
  const first = sidecarPath(kind, shardPath);
  if (!isTaken) {
    throw new FileError(
      { path: first },
      `${shownLocation(first)} cannot be written, and there is no folder on this machine to keep it in; set SHARDTOOL_SIDECARS to a folder that can be written.`,
    );
  }
  throw new FileError(
    { path: first },
    `${first} was not written by shardtool, so it stays, and there is no other place for what was to be there; move it away.`,
  );
}

/** Removes what processes that were killed left unfinished where files of ours go that belong to these shards. */
export function removeAbandonedSidecars(shardPaths: readonly string[]): void {
  for (const folder of new Set(shardPaths.map((shard) => splitShardPath(shard).folder))) {
    if (!isRemote(folder)) removeAbandoned(folder);
    const side = sideFolder(folder);
    if (side !== null) removeAbandoned(side);
  }
}

/**
 * The folder on this machine that keeps what cannot lie beside shards, since their folder is read-only or remote:
 * one for each folder of shards, below `SHARDTOOL_SIDECARS`, or else below the user's cache folder. Null for a user without a
 * home folder, as a container may have one that is only a number.
 */
export function sideFolder(folder: string): string | null {
  const cache = process.env.XDG_CACHE_HOME || homeCache();
  const base = process.env.SHARDTOOL_SIDECARS || (cache && path.join(cache, 'shardtool', 'beside'));
  if (base === null) return null;
  // What follows "?" in an address may be a secret, and is not what tells one place from another.
  const place = isRemote(folder) ? folder.replace(/\?.*$/s, '') : path.resolve(folder);
  return path.join(base, createHash('sha256').update(place).digest('hex').slice(0, 32));
}

function homeCache(): string | null {
  try {
    return path.join(homedir(), '.cache');
  } catch {
    return null;
  }
}

/** Who wrote what lies at `file`: the file itself says so, or, for kinds without a mark, the pack's note (`isNoted`). */
export async function ownerOf(kind: SidecarName, file: string, isNoted = false): Promise<Owner> {
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw new FileError({ path: file }, `${file} cannot be opened (${error.message}).`, { cause: error });
  });
  if (handle === null) return 'nobody';
  try {
    const { mark } = kindOf(kind);
    if (mark === undefined) return isNoted ? 'shardtool' : 'other';
    const found = await handle.stat();
    if (!found.isFile()) return 'other';
    const { size } = found;
    const tail = Buffer.alloc(Math.min(size, MARK_BYTES));
    await handle.read(tail, 0, tail.length, size - tail.length);
    return tail.includes(mark, 0, 'latin1') ? 'shardtool' : 'other';
  } finally {
    await handle.close();
  }
}

/** What tells a remote shard from another one of its name; '' for one on this machine, whose time does. */
async function versionOf(shardPath: string, storage: StorageOptions | undefined): Promise<string> {
  if (!isRemote(shardPath)) return '';
  const entry = await entryAt(shardPath, storage);
  return `${createHash('sha256').update(`${entry?.size} ${entry?.version}`).digest('hex').slice(0, 16)}-`;
}

/** Where a file of ours may be, in the order in which the places are looked at. */
async function placesOf(kind: SidecarName, shardPath: string, storage: StorageOptions | undefined): Promise<string[]> {
  const { folder, shard } = splitShardPath(shardPath);
  const { fileName, otherName } = kindOf(kind);
  const names = [fileName(shard), ...(otherName === undefined ? [] : [otherName(shard)])].filter(
    (name) => name !== shard,
  );
  const beside = isRemote(folder) ? [] : names.map((name) => path.join(folder, nameAmong(shard, name)));
  const above = datasetFolder(folder, shard);
  const isOfPack = !isRemote(folder) && above !== folder && (await entryAt(path.join(above, MANIFEST_FILE))) !== null;
  if (isOfPack) beside.unshift(path.join(above, fileName(shard)));
  const side = otherName === undefined ? null : sideFolder(folder);
  return side === null ? beside : [...beside, path.join(side, (await versionOf(shardPath, storage)) + names[0]!)];
}

/** Where earlier builds wrote a file of ours: among the shards, under a name that other software does not skip. */
function earlierPlaces(kind: SidecarName, folder: string, shard: string): string[] {
  if (isRemote(folder) || !isReadByFolder(shard)) return [];
  const { fileName, otherName } = kindOf(kind);
  return [fileName(shard), ...(otherName === undefined ? [] : [otherName(shard)])].map((name) =>
    path.join(folder, name),
  );
}

/**
 * The name of a file of ours in a folder of shards. Spark, pyarrow and Hugging Face's `datasets` take every file of a folder
 * for a shard unless its name begins with a dot.
 */
function nameAmong(shard: string, name: string): string {
  return isReadByFolder(shard) ? `.${name}` : name;
}

/** Whether other software reads all files of a folder as shards of this layout. */
function isReadByFolder(shard: string): boolean {
  return entryOfShard(shard)?.isReadByFolder === true;
}

/** The folder of the dataset that a shard of a pack is of: the one above `folder` if that is for shards alone. */
function datasetFolder(folder: string, shard: string): string {
  const shardFolder = entryOfShard(shard)?.shardFolder;
  if (shardFolder === undefined) return folder;
  const { folder: above, name } = splitLocation(folder);
  return name === shardFolder || name === hiddenFolder(shardFolder) ? above : folder;
}

/** The name of the folder in which a pack writes shards, so that other software does not take those for all that there are. */
export function hiddenFolder(shardFolder: string): string {
  return `.${shardFolder}`;
}

function entryOfShard(shard: string): LayoutEntry | undefined {
  const layout = layoutOfName(shard);
  return layout === null ? undefined : entryOf(layout);
}

function splitShardPath(shardPath: string): { readonly folder: string; readonly shard: string } {
  if (isRemote(shardPath)) {
    const place = splitLocation(shardPath);
    const inner = layoutNames()
      .map(entryOf)
      .find(({ innerFile }) => innerFile === place.name);
    const own = splitLocation(place.folder);
    const isInner = inner !== undefined && own.name.endsWith(inner.extension);
    return isInner ? { folder: own.folder, shard: own.name } : { folder: place.folder, shard: place.name };
  }
  const file = shardPath.replace(/[/\\]+$/, '');
  const own = path.dirname(file);
  const isInner = layoutNames()
    .map(entryOf)
    .some(({ extension, innerFile }) => innerFile === path.basename(file) && own.endsWith(extension));
  const shard = isInner ? own : file;
  return { folder: path.dirname(shard), shard: path.basename(shard) };
}

async function canBeMade(folder: string): Promise<boolean> {
  try {
    makeFolder(folder);
  } catch {
    return false;
  }
  return isWritable(folder);
}

async function isWritable(folder: string): Promise<boolean> {
  return access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );
}
