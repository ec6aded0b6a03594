import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { hasNoFolder, OVERLAYS_FOLDER, packedName, parseOverlay } from '@shardtool/format';
import { followOverlays, overlayNamesKey, overlaySetsUnnamed } from '@shardtool/reader';
import { openStorage, readWholeOf, type Storage, type StorageOptions } from '@shardtool/storage';
import type { Destination } from '../output/destination.js';
import { LIST_FILES, writeListFile } from '../output/lists.js';
import { readTombstones, type Tombstones } from '../output/tombstones.js';
import { pendingChanges } from './pending.js';

/** A dataset and the folder that shows it. */
interface ChangedPlace {
  readonly location: string;
  readonly storage: StorageOptions | undefined;
  readonly destination: Destination;
}

/** Copies of overlays that {@link followOverlays} or `overlay rm` made. */
const COPY = /\.[0-9a-f]{16}\.jsonl$/;

/**
 * Finishes a change that was killed: overlays follow the shards, and if the change was an erasure, erased keys are
 * removed from lists and from copies of overlays. Every change begins with this.
 */
export async function finishInterrupted(place: ChangedPlace): Promise<void> {
  const storage = await openStorage(place.location, place.storage);
  const erased = await readTombstones(storage);
  await followOverlays(place.location, { storage: place.storage, isErased: (key) => erased.has(key) });
  if ((await pendingChanges(storage)).some(({ erases }) => erases.length > 0)) {
    await forgetErased(storage, place.destination, erased);
  }
}

/** Removes erased keys from the lists of the dataset, and copies of overlays that name them. */
export async function forgetErased(storage: Storage, destination: Destination, erased: Tombstones): Promise<void> {
  if (erased.size === 0) return;
  let isChanged = false;
  for (const name of LIST_FILES) if (await forgetInList(destination.folder, name, erased)) isChanged = true;
  if (isChanged) {
    await destination.sendNotes();
    await destination.removeGone();
  }
  await forgetInCopies(storage, erased);
}

async function forgetInCopies(storage: Storage, erased: Tombstones): Promise<void> {
  try {
    for await (const { name } of storage.list(`${OVERLAYS_FOLDER}/dropped/`)) {
      if (!COPY.test(name)) continue;
      const overlay = readCopy(await readWholeOf(storage, name), name);
      if (overlay === null) continue;
      if (overlaySetsUnnamed(overlay) || overlayNamesKey(overlay, (key) => erased.has(key))) await storage.remove(name);
    }
  } catch (error) {
    if (storage.localPath === undefined || !hasNoFolder(error)) throw error;
  }
}

/** The overlay in a file; null for a file of another program. */
function readCopy(bytes: Uint8Array, name: string) {
  try {
    return parseOverlay(bytes, name);
  } catch {
    return null;
  }
}

/** Writes a list without the lines about erased samples. Returns false if it has none. */
async function forgetInList(folder: string, name: string, erased: Tombstones): Promise<boolean> {
  const path = join(folder, name);
  if (!existsSync(path)) return false;
  const lines = () => createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY });
  let isNamed = false;
  for await (const line of lines()) isNamed ||= entryOfLine(line, erased) === null;
  if (!isNamed) return false;
  async function* left(): AsyncGenerator<object> {
    for await (const line of lines()) {
      const entry = entryOfLine(line, erased);
      if (entry !== null) yield entry;
    }
  }
  await writeListFile(folder, name, left());
  return true;
}

/** The object in a line of a list; null if it names an erased key, or a file that had one. */
function entryOfLine(line: string, erased: Tombstones): object | null {
  const entry: Record<string, unknown> = JSON.parse(line);
  for (const [field, value] of Object.entries(entry)) {
    if (typeof value !== 'string') continue;
    // Reasons name other files, such as the one that has the same key.
    const texts = field === 'reason' ? [value, ...value.split(/[\s"'“”(),;]+/)] : [value];
    if (texts.some((text) => isErasedName(text.replace(/[.:]+$/, ''), erased))) return null;
  }
  return entry;
}

/** Whether a text is an erased key, or the path of a file with such a key. */
function isErasedName(text: string, erased: Tombstones): boolean {
  if (text === '') return false;
  const key = packedName(text, [])?.key;
  return erased.has(text) || (key !== undefined && key !== text && erased.has(key));
}
