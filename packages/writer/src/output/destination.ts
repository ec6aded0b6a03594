import { OptionError, option, replaceTexts, ShardtoolError, sentence } from '@shardtool/base';
import { isRemote, localPathOf, schemeOf, shownLocation } from '@shardtool/storage';
import { DiskFullError } from '../errors.js';
import { BucketOutput, type StagingOptions } from './bucket/bucket-output.js';

/**
 * The output location of a dataset. The dataset is always made in a local folder: its final one, or one from which it
 * is uploaded. All rules of what a pack may find, keep and replace apply to the folder, so for an upload the folder
 * mirrors the remote location; see `BucketOutput`.
 */
export interface Destination {
  /** Location for messages. */
  readonly location: string;
  /** The same as it was given, to read from. */
  readonly place: string;
  /** Folder in which it is made. */
  readonly folder: string;
  /** True if finished shards are stored elsewhere; the folder's view of them was compared with that location. */
  readonly isElsewhere: boolean;
  /** Brings the contents of the remote location to the folder. `recheck` verifies the checksums of the shards there. */
  fetch(recheck: boolean): Promise<void>;
  /** Downloads files of which the folder has only the size. */
  fetchFiles(names: readonly string[]): Promise<void>;
  /** Removes from the remote location the files that were removed from the folder. */
  removeGone(): Promise<void>;
  /** Places the plan at this path for all parts, or replaces it by an earlier one. */
  placePlan(path: string): Promise<void>;
  /** Uploads the files next to shards that exist once per dataset. */
  sendNotes(): Promise<void>;
  /** Uploads a file, named below the folder, and replaces an earlier one. */
  sendFile(name: string): Promise<void>;
  /**
   * Uploads a complete shard: its files, named below the folder, and its note. Resolves when there is space to make
   * another shard. `kept` are files that are read again.
   */
  sendShard(files: readonly string[], note: string | null, kept?: readonly string[]): Promise<void>;
  /** Resolves when every shard is uploaded. */
  whenSent(): Promise<void>;
  /** Commits the complete dataset of the folder. Throws if another one was committed in the meantime. */
  commit(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the destination for this kind of location. The caller must close it. Throws {@link OptionError} for a location
 * that cannot be written.
 */
export async function openDestination(output: string, options: StagingOptions): Promise<Destination> {
  const path = shownLocation(output);
  if (!isRemote(output)) {
    if (options.staging === undefined) return folderDestination(localPathOf(output)!);
    const message = sentence`The option ${option('staging')} is for output in a bucket, but ${path} is a local folder; remove it.`;
    throw new OptionError({ path }, message);
  }
  if (!['s3', 'gs'].includes(schemeOf(output))) {
    throw new OptionError({ path }, `${path} cannot be written: write to a folder, to s3:// or to gs://.`);
  }
  return BucketOutput.open(output, options);
}

/** Runs `work` at an open destination, and closes it. Errors name the output location. */
export async function atDestination<T>(
  destination: Destination,
  work: (destination: Destination) => Promise<T>,
): Promise<T> {
  try {
    return await namingOutput(destination, () => work(destination));
  } finally {
    await destination.close();
  }
}

/**
 * Runs `work`, and replaces the local folder in its errors by the output location. Rules for folders, the reading of
 * files and the checks of shards are the same for all destinations and know the folder alone, so it is replaced here.
 */
export async function namingOutput<T>(
  { folder, location, isElsewhere }: Destination,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isElsewhere || !(error instanceof ShardtoolError) || error instanceof DiskFullError) throw error;
    const named = (text: string) => text.replaceAll(folder, location);
    const { path, shard } = error;
    replaceTexts(error, named);
    throw Object.assign(error, {
      ...(path !== undefined && { path: named(path) }),
      ...(shard !== undefined && { shard: named(shard) }),
    });
  }
}

/** A folder as the final output. */
export function folderDestination(path: string): Destination {
  const nothing = async (): Promise<void> => undefined;
  return {
    location: shownLocation(path),
    place: path,
    folder: path,
    isElsewhere: false,
    fetch: nothing,
    fetchFiles: nothing,
    removeGone: nothing,
    placePlan: nothing,
    sendNotes: nothing,
    sendFile: nothing,
    sendShard: nothing,
    whenSent: nothing,
    commit: nothing,
    close: nothing,
  };
}
