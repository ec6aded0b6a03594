import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtomicFile, FileError, reasonOf } from '@shardtool/base';
import { MANIFEST_FILE, PACK_NOTE_FILE, type WrittenLayoutName } from '@shardtool/format';
import { readNote, writeNote } from './pack-note.js';
import { QUARANTINE_FILE } from './quarantine.js';

export const SKIPPED_FILE = 'skipped.jsonl';
/** Packed files that have changed or were deleted since, as the last `append` found. */
export const CHANGED_FILE = 'changed.jsonl';

/** Images that were not packed because another has the same bytes. */
export const DUPLICATES_FILE = 'duplicates.jsonl';

/** Lists next to the shards, with one JSON object per line: what was skipped, and why. */
export const LIST_FILES = [QUARANTINE_FILE, DUPLICATES_FILE, SKIPPED_FILE, CHANGED_FILE] as const;

/** Characters that are written at a time. */
const WRITTEN_AT_ONCE = 1 << 16;

/** Writes a list line by line, replacing an earlier one; no file if the list is empty. Throws {@link FileError}. */
export async function writeListFile(
  folder: string,
  name: string,
  entries: Iterable<object> | AsyncIterable<object>,
): Promise<void> {
  const path = join(folder, name);
  let count = 0;
  let text = '';
  let file: AtomicFile | undefined;
  try {
    file = await AtomicFile.create(path);
    for await (const entry of entries) {
      count++;
      text += `${JSON.stringify(entry)}\n`;
      if (text.length < WRITTEN_AT_ONCE) continue;
      await file.handle.appendFile(text);
      text = '';
    }
    await file.handle.appendFile(text);
    if (count > 0) return await file.place();
    await file.abandon();
    rmSync(path, { force: true });
  } catch (cause) {
    await file?.abandon();
    throw new FileError({ path }, `${path} cannot be written: ${reasonOf(cause)}.`, { cause });
  }
}

/**
 * Writes lists to a folder in which no pack has started, with a note that shows who wrote them, so that the next pack
 * removes them. A folder with a dataset or an unfinished pack already has its own lists.
 */
export async function listBeforePack(
  folder: string,
  format: WrittenLayoutName,
  quarantined: readonly object[],
  skipped: Iterable<object>,
): Promise<void> {
  const isBegun = readdirSync(folder).some((name) => name === MANIFEST_FILE || name === PACK_NOTE_FILE);
  if (isBegun && !isOnlyListed(folder)) return;
  await writeNote(folder, { version: 1, format, shards: [], otherIndexes: [] });
  await writeListFile(folder, QUARANTINE_FILE, quarantined);
  await writeListFile(folder, SKIPPED_FILE, skipped);
}

/** True if a folder has a note and lists, but no shard was announced in it. */
function isOnlyListed(folder: string): boolean {
  const names = readdirSync(folder);
  return names.includes(PACK_NOTE_FILE) && !names.includes(MANIFEST_FILE) && readNote(folder).shards.length === 0;
}
