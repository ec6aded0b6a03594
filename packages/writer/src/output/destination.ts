import { OptionError, ShardtoolError } from '@shardtool/base';
import { isRemote, localPathOf, schemeOf, shownLocation } from '@shardtool/storage';
import { DiskFullError } from '../errors.js';
import { BucketOutput, type StagingOptions } from './bucket/bucket-output.js';

/**
 * Where a dataset is to lie. It is made in a folder of this machine in any case: in the one where it stays, or in one from
 * which it is sent on. All rules of what a pack may find, keep and replace are those of the folder, so one that is sent on
 * shows there what lies at the other place; see `BucketOutput`.
 */
export interface Destination {
  /** For messages. */
  readonly location: string;
  /** Where it is made. */
  readonly folder: string;
  /** Finished shards lie somewhere else; what the folder has of them was compared with that. */
  readonly isElsewhere: boolean;
  /** Brings what lies at the other place to the folder. `recheck` sums the shards there. */
  fetch(recheck: boolean): Promise<void>;
  /** Brings the content of files of which the folder has the size alone. */
  fetchFiles(names: readonly string[]): Promise<void>;
  /** What was removed from the folder goes there, too. */
  removeGone(): Promise<void>;
  /** The plan at this path is that of all parts, or is replaced by that which came before. */
  placePlan(path: string): Promise<void>;
  /** Sends what lies beside shards, one for all. */
  sendNotes(): Promise<void>;
  /** Sends a file, named below the folder, in place of an earlier one. */
  sendFile(name: string): Promise<void>;
  /**
   * A shard is whole: its files, named below the folder, and its note. Resolves when there is room for another one to be
   * made. `kept` are files that are read again.
   */
  sendShard(files: readonly string[], note: string | null, kept?: readonly string[]): Promise<void>;
  /** Resolves when every shard is there. */
  whenSent(): Promise<void>;
  /** The dataset in the folder is whole. Throws where another one was committed meanwhile. */
  commit(): Promise<void>;
  close(): Promise<void>;
}

/** One entry a kind of place. Whoever opens one closes it. Throws {@link OptionError} for a place that cannot be written. */
export async function openDestination(output: string, options: StagingOptions): Promise<Destination> {
  const path = shownLocation(output);
  if (!isRemote(output)) {
    if (options.staging === undefined) return folderDestination(localPathOf(output)!);
    const message = `The option "staging" is for shards on their way to a bucket, and ${path} is a folder of this machine; leave it out.`;
    throw new OptionError({ path }, message);
  }
  if (!['s3', 'gs'].includes(schemeOf(output))) {
    throw new OptionError({ path }, `${path} cannot be written: write to a folder, to s3:// or to gs://.`);
  }
  return BucketOutput.open(output, options);
}

/** Does `work` and has its errors name the place where the dataset is to lie, and not the folder where it is made. */
export async function namingPlace<T>(
  { folder, location, isElsewhere }: Destination,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isElsewhere || !(error instanceof ShardtoolError) || error instanceof DiskFullError) throw error;
    const named = (text: string) => text.replaceAll(folder, location);
    const { path, shard } = error;
    throw Object.assign(error, {
      message: named(error.message),
      ...(path !== undefined && { path: named(path) }),
      ...(shard !== undefined && { shard: named(shard) }),
    });
  }
}

/** The folder where the dataset stays. */
export function folderDestination(path: string): Destination {
  const nothing = async (): Promise<void> => undefined;
  return {
    ...{ location: shownLocation(path), folder: path, isElsewhere: false },
    ...{ fetch: nothing, fetchFiles: nothing, removeGone: nothing, placePlan: nothing, sendNotes: nothing },
    ...{ sendFile: nothing, sendShard: nothing, whenSent: nothing, commit: nothing, close: nothing },
  };
}
