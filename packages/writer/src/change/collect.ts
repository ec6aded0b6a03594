import { existsSync, rmdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inLanes, OptionError, type OptionTable, option, sentence } from '@shardtool/base';
import {
  entryOf,
  keptVersions,
  PACK_NOTE_FILE,
  readManifest,
  readVersion,
  SIDECAR_NAMES,
  sidecarOfShard,
  versionFile,
} from '@shardtool/format';
import { openStorage, type Storage, shownLocation } from '@shardtool/storage';
import { changedMeanwhile } from '../output/bucket/bucket-output.js';
import { recordNames } from '../output/keep-version.js';
import { findPlan } from '../output/pack-state.js';
import { shardPaths } from '../shard/shard-paths.js';
import {
  CHANGE_OPTIONS,
  type ChangeOptions,
  changeDataset,
  changing,
  lookAtDataset,
  type SeenDataset,
} from './dataset-change.js';
import { pendingChanges, pendingFolder } from './pending.js';
import { type ChainLink, chainOf } from './version-log.js';

/** Which versions of a dataset are kept. */
export interface CollectOptions extends ChangeOptions {
  /** The newest versions, the current one included, are kept. Default: all, or only the current one if `olderThan` is set. */
  readonly keep?: number | undefined;
  /** Versions that were replaced less than this number of milliseconds ago are kept. Default: 0. */
  readonly olderThan?: number | undefined;
  /** Nothing is removed: the report says what would be. Default: false. */
  readonly dryRun?: boolean | undefined;
}

const COLLECT_OPTIONS = {
  ...CHANGE_OPTIONS,
  keep: { kind: 'whole', from: 1, help: 'Number of the newest versions that are kept' },
  olderThan: { kind: 'whole', from: 0, help: 'Age from which versions are removed, in milliseconds' },
  dryRun: { kind: 'switch', default: false, help: 'Whether nothing is removed' },
} as const satisfies OptionTable;

/** What {@link collectGarbage} removed. */
export interface CollectReport {
  /** Versions that are still kept, the current one first. */
  readonly keptVersions: readonly string[];
  readonly removedVersions: readonly string[];
  /** Number of removed files: shards, their indexes, and files of versions. */
  readonly removedFiles: number;
  readonly removedBytes: number;
}

/** Files of an unfinished change are kept for this time, because another process may still be writing them. */
const PENDING_MS = 24 * 3600 * 1000;
const REMOVED_AT_ONCE = 16;

/**
 * Removes earlier versions of a dataset, and the shards that no remaining version names. Loaders that have a removed version
 * open get errors. Throws OptionError if neither `keep` nor `olderThan` is given, FileError.
 */
export async function collectGarbage(location: string, options: CollectOptions): Promise<CollectReport> {
  return changing('collectGarbage', COLLECT_OPTIONS, location, options, async () => {
    if (options.keep === undefined && options.olderThan === undefined) {
      const message = sentence`Choose the versions to remove: with ${option('keep')}, all but the newest ones; with ${option('olderThan')}, the versions that were replaced that long ago.`;
      throw new OptionError({}, message);
    }
    const open = options.dryRun === true ? lookAtDataset : changeDataset;
    return open<CollectReport>(location, options, (seen) => collect(seen, options));
  });
}

async function collect(change: SeenDataset, { keep, olderThan, dryRun }: CollectOptions): Promise<CollectReport> {
  const { location, storage: how, folder } = change;
  const storage = await openStorage(location, how);
  const chain = await chainOf(location, how);
  const kept = chain.filter((_, i) => i === 0 || isKept(chain, i, keep, olderThan));
  const stays = new Set(kept.map(({ version }) => version));
  const all = await keptVersions(location, how);
  // The log does not lead to these versions, because a part of it is missing.
  const known = new Set(chain.map(({ version }) => version));
  const strangers = all.filter((version) => !known.has(version));
  for (const version of strangers) if (isStrangerKept(change, chain, version, keep, olderThan)) stays.add(version);
  const removed = all.filter((version) => !stays.has(version));
  const needed = new Set<string>();
  for (const version of [chain[0]!.version, ...all.filter((one) => stays.has(one))]) {
    for (const file of await filesOf(change, version)) needed.add(file);
  }
  const candidates = new Set<string>();
  for (const version of removed) for (const file of await filesOf(change, version)) candidates.add(file);
  const changes = await pendingChanges(storage);
  const pending = changes.filter(({ time }) => Date.now() - time >= pendingMs(change));
  // A running change may write a shard again that a killed change has left.
  for (const { files } of changes.filter((one) => !pending.includes(one))) for (const file of files) needed.add(file);
  for (const { files } of pending) for (const file of files) candidates.add(file);
  for (const file of abandonedFiles(change)) candidates.add(file);
  // The next erasure finishes one that was killed.
  const done = pending.filter(({ erases }) => erases.length === 0);
  const recordsKept = new Set(kept.map(({ record }) => record));
  const records = (await recordNames(storage)).filter((name) => !recordsKept.has(name));
  // Shards are removed first. If this call is killed, the next one finds the rest by the versions that still name them.
  const shards = [...candidates].filter((file) => !needed.has(file) && existsSync(join(folder.path, file)));
  const others = [...removed.map(versionFile), ...records, ...done.map(({ name }) => `${pendingFolder}${name}`)];
  const files = [...shards, ...others.filter((file) => existsSync(join(folder.path, file)))];
  const removedBytes = files.reduce((sum, file) => sum + statSync(join(folder.path, file)).size, 0);
  if (dryRun !== true) {
    // In a bucket, another process may have restored a version in the meantime.
    const { identity } = await readManifest(location, how);
    if (identity !== chain[0]!.version) throw changedMeanwhile(shownLocation(location));
    await removeAll(storage, change, shards, others);
  }
  return {
    keptVersions: [...stays].filter((version) => version === chain[0]!.version || all.includes(version)),
    removedVersions: removed,
    removedFiles: files.length,
    removedBytes,
  };
}

function isKept(
  chain: readonly ChainLink[],
  i: number,
  keep: number | undefined,
  olderThan: number | undefined,
): boolean {
  if (keep !== undefined && i < keep) return true;
  // The version was replaced when the one above it was committed.
  const { time } = chain[i - 1]!;
  return olderThan !== undefined && time !== null && Date.now() - Date.parse(time) < olderThan;
}

function isStrangerKept(
  { folder }: SeenDataset,
  chain: readonly ChainLink[],
  version: string,
  keep: number | undefined,
  olderThan: number | undefined,
): boolean {
  if (keep !== undefined && chain.length < keep) return true;
  const found = statSync(join(folder.path, versionFile(version)), { throwIfNoEntry: false });
  return olderThan !== undefined && found !== undefined && Date.now() - found.mtimeMs < olderThan;
}

/** Files of shards that a pack announced, and that it did not commit before it was discarded. */
function abandonedFiles(change: SeenDataset): string[] {
  const { folder, manifest } = change;
  if (findPlan(folder.path) !== null || !existsSync(join(folder.path, PACK_NOTE_FILE))) return [];
  const layout = entryOf(manifest.format);
  return folder
    .noted()
    .shards.flatMap((stem) => {
      const { file, sidecars } = shardPaths(layout, stem);
      return [file, ...sidecars];
    })
    .filter((file) => {
      const found = statSync(join(folder.path, file), { throwIfNoEntry: false });
      return found !== undefined && Date.now() - found.mtimeMs >= pendingMs(change);
    });
}

/** In a local folder the lock shows that no other change is at work. */
function pendingMs({ destination }: SeenDataset): number {
  return destination.isElsewhere ? PENDING_MS : 0;
}

/** Paths of all files of the shards of a version. */
async function filesOf({ location, storage }: SeenDataset, version: string): Promise<string[]> {
  const { shards } = await readVersion(location, version, storage);
  return shards.flatMap(({ file }) => [file, ...sidecarOfShard(file, SIDECAR_NAMES)]);
}

async function removeAll(
  storage: Storage,
  { folder }: SeenDataset,
  shards: readonly string[],
  others: readonly string[],
): Promise<void> {
  for (const files of [shards, others]) await inLanes(files, REMOVED_AT_ONCE, (file) => storage.remove(file));
  if (storage.localPath === undefined) return;
  for (const file of shards) removeEmpty(folder.path, file);
}

/** Removes the folder that a shard with its own folder leaves empty. */
function removeEmpty(folder: string, file: string): void {
  if (dirname(file) === '.') return;
  try {
    rmdirSync(join(folder, dirname(file)));
  } catch {
    // Other shards are in it.
  }
}
