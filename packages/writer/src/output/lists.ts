import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtomicFile, FileError } from '@shardtool/base';
import { MANIFEST_FILE, PACK_NOTE_FILE, type WrittenLayoutName } from '@shardtool/format';
import { DUPLICATES_FILE } from '../dedupe/dedupe.js';
import { readNote, writeNote } from './pack-note.js';
import { QUARANTINE_FILE } from './quarantine.js';

export const SKIPPED_FILE = 'skipped.jsonl';
/** Files of a dataset that have changed or gone since they were packed, as the last `append` has found. */
export const CHANGED_FILE = 'changed.jsonl';

/** Lists that a pack lays beside its shards, one JSON object a line: what was left out, and why. */
export const LIST_FILES = [QUARANTINE_FILE, DUPLICATES_FILE, SKIPPED_FILE, CHANGED_FILE] as const;

/** Of a list, in characters. */
const WRITTEN_AT_ONCE = 1 << 16;

/** Writes a list line by line, in place of an earlier one; no file where nothing is to be listed. Throws {@link FileError}. */
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
    throw new FileError({ path }, `${path} cannot be written (${(cause as Error).message}).`, { cause });
  }
}

/**
 * Lays lists into a folder in which no pack has begun yet, with a note that says whose they are: the next pack takes them away.
 * A folder that holds a dataset or a pack that did not end has lists of its own.
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

/** Whether a folder has a note and lists, and no shard was announced in it. */
function isOnlyListed(folder: string): boolean {
  const names = readdirSync(folder);
  return names.includes(PACK_NOTE_FILE) && !names.includes(MANIFEST_FILE) && readNote(folder).shards.length === 0;
}
