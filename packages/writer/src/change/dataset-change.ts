import { randomUUID } from 'node:crypto';
import {
  CALL_OPTIONS,
  type CheckedValues,
  checkCallOptions,
  checkLocation,
  type OptionTable,
  withMessages,
} from '@shardtool/base';
import { type Manifest, readManifest, writeManifest } from '@shardtool/format';
import { followOverlays } from '@shardtool/reader';
import { openStorage, type StorageOptions } from '@shardtool/storage';
import { checkHeld } from '../folder-lock.js';
import { atDestination, type Destination, openDestination } from '../output/destination.js';
import { keepVersion } from '../output/keep-version.js';
import { OutputFolder } from '../output/output-folder.js';
import { forgetMadeFrom, readNote } from '../output/pack-note.js';
import { readTombstones } from '../output/tombstones.js';
import { finishInterrupted } from './forget-erased.js';
import { currentManifest } from './packed-dataset.js';

/** Options of all calls that change a dataset. */
export interface ChangeOptions {
  /** Folder on this machine in which shards of a bucket are made. Default: the system's folder for temporary files. */
  readonly staging?: string | undefined;
  /** Options for requests to remote storage. Omitted options come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** Ends the call with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export const CHANGE_OPTIONS = {
  staging: { kind: 'path', help: 'Folder in which shards of a bucket are made' },
  storage: CALL_OPTIONS.storage,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

/** A dataset while it is changed. New shards are made in `folder`, and its own are read at `location`. */
export interface OpenChange {
  readonly location: string;
  readonly storage: StorageOptions | undefined;
  readonly signal: AbortSignal | undefined;
  readonly folder: OutputFolder;
  readonly destination: Destination;
  readonly manifest: Manifest;
}

/**
 * Opens a dataset for a change: its folder is locked, or its bucket is listed. An erasure, a compaction and a restore
 * go through here, and end with {@link commitChange}; an append is a pack (`pack/append.ts`). An interrupted change is
 * finished first. Throws OutputLockedError, UnfinishedPackError, ManifestError, FileError.
 */
export async function changeDataset<Result>(
  location: string,
  { staging, storage, signal }: ChangeOptions,
  work: (change: OpenChange) => Promise<Result>,
): Promise<Result> {
  signal?.throwIfAborted();
  // Nothing may be created if there is no dataset.
  await currentManifest(location, storage);
  const opened = await openDestination(location, { part: undefined, staging, storage, signal });
  return atDestination(opened, async (destination) => {
    const folder = await OutputFolder.open(destination.folder, null, signal);
    try {
      await destination.fetch(false);
      await finishInterrupted({ location, storage, destination });
      const manifest = await readManifest(destination.folder);
      signal?.throwIfAborted();
      return await work({ location, storage, signal, folder, destination, manifest });
    } finally {
      folder.release();
    }
  });
}

/** A dataset that is read, but not changed. `folder` has its files, or their names and sizes. */
export type SeenDataset = Omit<OpenChange, 'folder'> & { readonly folder: Pick<OutputFolder, 'path' | 'noted'> };

/**
 * Runs `work` with a dataset in the state in which a change would find it. Nothing is locked or written, so the dataset may be
 * read-only. Files of an interrupted change are not removed. Throws UnfinishedPackError, ManifestError, FileError.
 */
export async function lookAtDataset<Result>(
  location: string,
  { staging, storage, signal }: ChangeOptions,
  work: (seen: SeenDataset) => Promise<Result>,
): Promise<Result> {
  signal?.throwIfAborted();
  await currentManifest(location, storage);
  // A change that is running has the staging folder of the whole dataset.
  const opened = await openDestination(location, { part: `look ${randomUUID()}`, staging, storage, signal });
  return atDestination(opened, async (destination) => {
    await destination.fetch(false);
    const { folder: path } = destination;
    const folder = { path, noted: () => readNote(path) };
    const manifest = await readManifest(path);
    return work({ location, storage, signal, folder, destination, manifest });
  });
}

/**
 * Replaces the dataset's manifest, which is kept as an earlier version, and lets the overlays follow. In a bucket, the
 * replacement has the condition that dataset.json is still the one that was read. Throws DatasetChangedError if it is not:
 * nothing has changed then.
 */
export async function commitChange(
  { location, storage, folder, destination, manifest }: OpenChange,
  next: Manifest,
  command: string,
): Promise<void> {
  await forgetMadeFrom(folder.path);
  await keepVersion(await openStorage(folder.path), manifest, next, command);
  checkHeld(folder.lock);
  await writeManifest(folder.path, next);
  await destination.commit();
  const erased = await readTombstones(await openStorage(location, storage));
  await followOverlays(location, { storage, isErased: (key) => erased.has(key) });
}

/** Checks of options beyond their tables. */
const OWN_CHECKS = {
  keys: (value: unknown) => typeof value === 'object' && value !== null && Symbol.iterator in value,
};

/** Checks the arguments of a call that changes a dataset, and runs it with clear messages. */
export function changing<Entries extends OptionTable, Result>(
  call: string,
  table: Entries,
  location: unknown,
  options: object,
  work: (checked: CheckedValues<Entries>) => Promise<Result>,
): Promise<Result> {
  checkLocation(call, location);
  const checked = checkCallOptions(call, table, options, OWN_CHECKS);
  return withMessages(() => work(checked));
}
