/** Paths of the sidecar files of shards on a disk, the software that wrote them, and paths for new ones. */
import { createHash } from 'node:crypto';
import { constants, existsSync, renameSync } from 'node:fs';
import { access, open, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { FileError, makeFolder, reasonOf, removeAbandoned } from '@shardtool/base';
import { entryAt, isRemote, type StorageOptions, shownLocation } from '@shardtool/storage';
import { MANIFEST_FILE } from './manifest.js';
import {
  datasetFolder,
  earlierSidecarPath,
  isReadByFolder,
  kindOf,
  type SidecarName,
  sidecarPath,
  splitShardPath,
} from './sidecars.js';

/** The software that wrote the file at a path. */
export type Owner = 'none' | 'shardtool' | 'other';

/** How far from the end of a file its mark may be, in bytes. The footer of an index is a few KiB. */
const MARK_BYTES = 1 << 20;

/** The path of a sidecar of a packed shard: {@link sidecarPath}, or the path of earlier versions if that file exists. */
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

/**
 * Finds shardtool's sidecar file of a shard. Returns null if the file does not exist. Also null if the shard is newer than its
 * sidecar, because the shard may have been replaced. With `mayBeOlder`, times are ignored: the sidecar itself identifies the
 * shard, and a copy of a dataset has the times at which its files were copied.
 */
export async function findSidecars(
  kind: SidecarName,
  shardPath: string,
  storage?: StorageOptions,
  { mayBeOlder = false } = {},
): Promise<string | null> {
  const { folder, shard } = splitShardPath(shardPath);
  // Sidecars of remote shards are kept on this machine. If there is no folder for them here, no request is needed.
  const side = sideFolder(folder);
  if (isRemote(shardPath) && (side === null || (await stat(side).catch(() => null)) === null)) return null;
  const packed = isRemote(shardPath) || mayBeOlder ? null : await stat(shardPath).catch(() => null);
  for (const file of [...(await placesOf(kind, shardPath, storage)), ...earlierPlaces(kind, folder, shard)]) {
    const made = await stat(file).catch(() => null);
    if (made === null || (packed !== null && made.mtimeMs < packed.mtimeMs)) continue;
    if ((await ownerOf(kind, file)) === 'shardtool') return file;
  }
  return null;
}

/**
 * Decides where to write a sidecar of a shard of other software: under its usual name; under its other name if the
 * usual one is taken; or in {@link sideFolder} (which is created) if the shard's folder cannot be written. Throws
 * {@link FileError} if both names are taken, if the usual name is taken and there is no other, or if neither folder can
 * be written. `isNoted`: pack.json names the file.
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
      `${shownLocation(first)} cannot be written, and this machine has no folder to keep it in. Set SHARDTOOL_SIDECARS to a writable folder.`,
    );
  }
  throw new FileError(
    { path: first },
    `${first} was not written by shardtool, so it is kept, but shardtool needs this name. Move the file away.`,
  );
}

/** Removes unfinished sidecars that killed processes left for these shards. */
export function removeAbandonedSidecars(shardPaths: readonly string[]): void {
  for (const folder of new Set(shardPaths.map((shard) => splitShardPath(shard).folder))) {
    if (!isRemote(folder)) removeAbandoned(folder);
    const side = sideFolder(folder);
    if (side !== null) removeAbandoned(side);
  }
}

/**
 * The folder on this machine for sidecars that cannot be stored next to their shards because the shards' folder is
 * read-only or remote: one per folder of shards, below `SHARDTOOL_SIDECARS`, or else below the user's cache folder.
 * Null for a user without a home folder, for example a numeric uid in a container.
 */
export function sideFolder(folder: string): string | null {
  const cache = process.env.XDG_CACHE_HOME || homeCache();
  const base = process.env.SHARDTOOL_SIDECARS || (cache && cacheFolder(path.join(cache, 'shardtool')));
  if (base === null) return null;
  // The query of a URL may be a secret, and does not identify the location.
  const place = isRemote(folder) ? folder.replace(/\?.*$/s, '') : path.resolve(folder);
  return path.join(base, createHash('sha256').update(place).digest('hex').slice(0, 32));
}

/** The folder of all sidecars below the cache folder. It is renamed if it has its name of earlier builds, because overlays are in it. */
function cacheFolder(cache: string): string {
  const [folder, earlier] = [path.join(cache, 'sidecars'), path.join(cache, 'beside')];
  try {
    if (existsSync(earlier) && !existsSync(folder)) renameSync(earlier, folder);
  } catch {
    // Another process has renamed it, or the cache folder is read-only: then it keeps its earlier name.
    if (existsSync(earlier) && !existsSync(folder)) return earlier;
  }
  return folder;
}

function homeCache(): string | null {
  try {
    return path.join(homedir(), '.cache');
  } catch {
    return null;
  }
}

/** The software that wrote `file`, by the mark in the file. Kinds without a mark are recognised by the pack's note (`isNoted`). */
export async function ownerOf(kind: SidecarName, file: string, isNoted = false): Promise<Owner> {
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw new FileError({ path: file }, `${file} cannot be opened: ${reasonOf(error)}.`, { cause: error });
  });
  if (handle === null) return 'none';
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

/** Identifies the version of a remote shard; '' for a local shard, whose modification time identifies it. */
async function versionOf(shardPath: string, storage: StorageOptions | undefined): Promise<string> {
  if (!isRemote(shardPath)) return '';
  const entry = await entryAt(shardPath, storage);
  return `${createHash('sha256').update(`${entry?.size} ${entry?.version}`).digest('hex').slice(0, 16)}-`;
}

/** The paths where our sidecar may be, in the order in which they are tried. */
async function placesOf(kind: SidecarName, shardPath: string, storage: StorageOptions | undefined): Promise<string[]> {
  const { folder, shard } = splitShardPath(shardPath);
  const { fileName, otherName } = kindOf(kind);
  const names = [fileName(shard), ...(otherName === undefined ? [] : [otherName(shard)])].filter(
    (name) => name !== shard,
  );
  const candidates = isRemote(folder) ? [] : names.map((name) => path.join(folder, nameAmong(shard, name)));
  const above = datasetFolder(folder, shard);
  const isOfPack = !isRemote(folder) && above !== folder && (await entryAt(path.join(above, MANIFEST_FILE))) !== null;
  if (isOfPack) candidates.unshift(path.join(above, fileName(shard)));
  const side = otherName === undefined ? null : sideFolder(folder);
  return side === null
    ? candidates
    : [...candidates, path.join(side, (await versionOf(shardPath, storage)) + names[0]!)];
}

/** The paths where earlier versions wrote our sidecars: among the shards, under a name that other software does not skip. */
function earlierPlaces(kind: SidecarName, folder: string, shard: string): string[] {
  if (isRemote(folder) || !isReadByFolder(shard)) return [];
  const { fileName, otherName } = kindOf(kind);
  return [fileName(shard), ...(otherName === undefined ? [] : [otherName(shard)])].map((name) =>
    path.join(folder, name),
  );
}

/**
 * The name of our sidecar in a folder of shards. Spark, pyarrow and Hugging Face datasets read every file of a folder
 * as a shard unless its name begins with a dot.
 */
function nameAmong(shard: string, name: string): string {
  return isReadByFolder(shard) ? `.${name}` : name;
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
