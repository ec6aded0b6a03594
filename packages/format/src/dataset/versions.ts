import { didYouMean, FileNotFoundError, OptionError } from '@shardtool/base';
import { joinLocation, openStorage, readWhole, type StorageOptions, shownLocation } from '@shardtool/storage';
import { MANIFEST_FILE, type Manifest, parseManifest, readManifest } from './manifest.js';

/** The folder of a dataset that holds its earlier versions. */
export const VERSIONS_FOLDER = 'versions';
/** The folder with one small record per change. */
export const VERSION_LOG = `${VERSIONS_FOLDER}/log/`;

/** A version is the identity of a dataset: 64 hexadecimal digits, of which a unique beginning of 6 or more also names it. */
const FULL = /^[0-9a-f]{64}$/;
const BEGINNING = /^[0-9a-f]{6,64}$/;

/** Path of the dataset.json of an earlier version, below the dataset's folder. */
export function versionFile(version: string): string {
  return `${VERSIONS_FOLDER}/${version}.json`;
}

/** Whether shardtool writes files with such a path below {@link VERSIONS_FOLDER}. */
export function isVersionFile(path: string): boolean {
  return parseRecordName(path) !== null || /^versions\/(?:[0-9a-f]{64}|pending\/[0-9a-f]{16})\.json$/.test(path);
}

/** The record of one change of a dataset. */
export interface VersionRecord {
  /** The version that the change made. */
  readonly version: string;
  /** The version that it replaced. */
  readonly parent: string;
  /** Name of the record that made the parent; null if the parent was the first version. */
  readonly previous: string | null;
  /** The command that made the change, such as `append`. */
  readonly command: string;
  /** Time of the commit, in ISO 8601. */
  readonly time: string;
  readonly samples: number;
  readonly shards: number;
  readonly bytes: number;
}

/** Name of a record: its number, which rises, and the beginning of its version, so that two writers never share a name. */
export function recordName(number: number, version: string): string {
  return `${VERSION_LOG}${String(number).padStart(8, '0')}-${version.slice(0, 16)}.json`;
}

/** The number and the beginning of the version in the name of a record; null for another file. */
export function parseRecordName(name: string): { readonly number: number; readonly version: string } | null {
  const found = /^versions\/log\/(\d{8,})-([0-9a-f]{16})\.json$/.exec(name);
  return found && { number: Number(found[1]), version: found[2]! };
}

/**
 * Reads the dataset.json of `version`: the current one, or one that a later change has kept. Throws {@link OptionError}
 * if the dataset has no such version, or several that begin like this.
 */
export async function readVersion(location: string, version: string, storage?: StorageOptions): Promise<Manifest> {
  const shown = shownLocation(location);
  if (!BEGINNING.test(version)) {
    const message = `"${version}" is not a version: give at least the first 6 of its 64 hexadecimal digits. "shardtool log ${shown}" lists all versions.`;
    throw new OptionError({ path: shown }, message);
  }
  const current = await readManifest(location, storage);
  if (current.identity === version) return current;
  const name = FULL.test(version) ? version : await completeVersion(location, version, current.identity, storage);
  if (name === current.identity) return current;
  const path = joinLocation(location, versionFile(name));
  const text = await readWhole(path, storage).catch((cause) => {
    throw cause instanceof FileNotFoundError ? noVersion(shown, version, [current.identity]) : cause;
  });
  return parseManifest(Buffer.from(text).toString(), shownLocation(path));
}

/** Finds the one version that begins like this. */
async function completeVersion(
  location: string,
  beginning: string,
  current: string,
  options: StorageOptions | undefined,
): Promise<string> {
  const shown = shownLocation(location);
  const all = [...new Set([current, ...(await keptVersions(location, options))])];
  const found = all.filter((version) => version.startsWith(beginning));
  if (found.length === 1) return found[0]!;
  if (found.length === 0) throw noVersion(shown, beginning, all);
  const message = `${found.length} versions of ${shown} begin with "${beginning}": give more digits.`;
  throw new OptionError({ path: shown }, message);
}

/** The earlier versions whose dataset.json is kept, in no particular order. */
export async function keptVersions(location: string, options?: StorageOptions): Promise<string[]> {
  const storage = await openStorage(location, options);
  const versions: string[] = [];
  try {
    for await (const { name } of storage.list(`${VERSIONS_FOLDER}/`)) {
      const version = /^versions\/([0-9a-f]{64})\.json$/.exec(name)?.[1];
      if (version !== undefined) versions.push(version);
    }
  } catch (error) {
    // A dataset that was never changed has no such folder.
    if (storage.localPath === undefined || !hasNoFolder(error)) throw error;
  }
  return versions;
}

/** Whether a local folder could not be listed because it does not exist. */
export function hasNoFolder(error: unknown): boolean {
  const { code } = ((error as { readonly cause?: unknown }).cause ?? {}) as { readonly code?: string };
  return code === 'ENOENT' || code === 'ENOTDIR';
}

function noVersion(shown: string, version: string, known: readonly string[]): OptionError {
  const hint = didYouMean(version, known) || '.';
  const message = `${shown} has no version ${version}${hint} "shardtool log ${shown}" lists the versions that are kept; ${MANIFEST_FILE} is the current one.`;
  return new OptionError({ path: shown }, message);
}
