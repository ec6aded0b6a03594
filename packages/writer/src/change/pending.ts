import { randomBytes } from 'node:crypto';
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

/** Announces files before they are written, so that "gc" finds them if the change is killed. Returns the name of the list. */
export async function announceChange(storage: Storage, files: readonly string[]): Promise<string> {
  const name = `${randomBytes(8).toString('hex')}.json`;
  await storage.put(pendingFolder + name, Buffer.from(`${JSON.stringify({ time: Date.now(), files })}\n`));
  return name;
}

/** Removes the list after the commit. */
export async function forgetChange(storage: Storage, name: string): Promise<void> {
  await storage.remove(pendingFolder + name);
}

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
