import { hasNoFolder, VERSIONS_FOLDER } from '@shardtool/format';
import { readWholeOf, type Storage } from '@shardtool/storage';

/** Folder of a dataset with a list of the files that each unfinished change has announced. */
export const pendingFolder = `${VERSIONS_FOLDER}/pending/`;

/** A change that has not ended: it is at work, or was killed. */
export interface PendingChange {
  /** Name of its list in {@link pendingFolder}. */
  readonly name: string;
  /** When it began, in milliseconds since 1970. */
  readonly time: number;
  /** Files that it may have written, below the folder of the dataset. */
  readonly files: readonly string[];
}

/** The changes that have announced files and have not ended. */
export async function pendingChanges(storage: Storage): Promise<readonly PendingChange[]> {
  const found: PendingChange[] = [];
  try {
    for await (const { name } of storage.list(pendingFolder)) {
      const { time, files } = JSON.parse(Buffer.from(await readWholeOf(storage, name)).toString());
      found.push({ name: name.slice(pendingFolder.length), time, files });
    }
  } catch (error) {
    if (storage.localPath === undefined || !hasNoFolder(error)) throw error;
  }
  return found;
}
