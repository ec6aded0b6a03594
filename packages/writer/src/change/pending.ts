import { randomBytes } from 'node:crypto';
import { hasNoFolder, VERSIONS_FOLDER } from '@shardtool/format';
import { readWholeOf, type Storage } from '@shardtool/storage';

/** Folder of a dataset with a list of the files that each unfinished change has announced. */
export const pendingFolder = `${VERSIONS_FOLDER}/pending/`;

/** A change that has not ended: it is running, or it was killed. */
export interface PendingChange {
  /** Name of its list in {@link pendingFolder}. */
  readonly name: string;
  /** When it began, in milliseconds since 1970. */
  readonly time: number;
  /** Files that it may have written, below the folder of the dataset. */
  readonly files: readonly string[];
  /** Hashes of the keys that it erases, as in the folder `erased`; empty for other changes. */
  readonly erases: readonly string[];
}

/** Announces files before they are written, so that "gc" finds them if the change is killed. Returns the name of the list. */
export async function announceChange(
  storage: Storage,
  { files, erases = [] }: { readonly files: readonly string[]; readonly erases?: readonly string[] },
): Promise<string> {
  const name = `${randomBytes(8).toString('hex')}.json`;
  await putPending(storage, { name, time: Date.now(), files, erases });
  return name;
}

/** Replaces the content of the list. */
export async function putPending(storage: Storage, { name, ...change }: PendingChange): Promise<void> {
  await storage.put(pendingFolder + name, Buffer.from(`${JSON.stringify(change)}\n`));
}

/** Removes the list after the commit. */
export async function forgetChange(storage: Storage, name: string): Promise<void> {
  await storage.remove(pendingFolder + name);
}

/** All lists. Files that shardtool did not write are skipped. */
export async function pendingChanges(storage: Storage): Promise<readonly PendingChange[]> {
  const found: PendingChange[] = [];
  try {
    for await (const { name } of storage.list(pendingFolder)) {
      const own = name.slice(pendingFolder.length);
      if (!/^[0-9a-f]{16}\.json$/.test(own)) continue;
      const change = parsePending(Buffer.from(await readWholeOf(storage, name)).toString());
      if (change !== null) found.push({ name: own, ...change });
    }
  } catch (error) {
    if (storage.localPath === undefined || !hasNoFolder(error)) throw error;
  }
  return found;
}

function parsePending(text: string): Omit<PendingChange, 'name'> | null {
  const isTexts = (list: unknown): list is string[] =>
    Array.isArray(list) && list.every((item) => typeof item === 'string');
  try {
    const { time, files, erases = [] } = JSON.parse(text);
    return typeof time === 'number' && isTexts(files) && isTexts(erases) ? { time, files, erases } : null;
  } catch {
    return null;
  }
}
