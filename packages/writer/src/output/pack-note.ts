import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomically } from '@shardtool/base';
import { OUTPUT_LAYOUTS, type OutputLayoutName, PACK_NOTE_FILE } from '@shardtool/format';
import { OutputNotEmptyError } from '../errors.js';
import { inLockedFolder } from '../folder-lock.js';
import type { OtherIndex } from '../options.js';
import { OTHER_INDEXES } from '../shard/other-indexes.js';

/** Shard names as in dataset.json: a single name inside its folder, on Windows too. */
export const SHARD_STEM = /^[^./\\:\0][^/\\:\0]*$/;

/**
 * The first file of a pack: the shards that it is about to write. Next to dataset.json it shows that a pack wrote them;
 * without dataset.json, that the pack did not end.
 */
export interface PackNote {
  readonly version: 1;
  readonly format: OutputLayoutName;
  /** Names of the shards without extension; they never lead out of the folder. */
  readonly shards: readonly string[];
  readonly otherIndexes: readonly OtherIndex[];
  /**
   * Digest of the source and the options: equal digests give equal shards. Absent if the shards were made by several
   * packs, or were changed later.
   */
  readonly madeFrom?: string | undefined;
  /**
   * Options that the shards depend on, by name; added shards are packed with the same ones. Absent in earlier notes.
   */
  readonly options?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Checked without a library, which would take as long to load as everything else at the start of a pack. Throws if it
 * is not a valid note.
 */
function checkNote(said: Partial<Record<keyof PackNote, unknown>>): PackNote {
  const { version, format, shards, otherIndexes, madeFrom, options } = said;
  const isList = (list: unknown, isOne: (item: string) => boolean) =>
    Array.isArray(list) && list.every((item) => typeof item === 'string' && isOne(item));
  const isNote =
    version === 1 &&
    OUTPUT_LAYOUTS.some((layout) => layout === format) &&
    isList(shards, (stem) => SHARD_STEM.test(stem)) &&
    isList(otherIndexes, (index) => OTHER_INDEXES.some((known) => known === index)) &&
    (madeFrom === undefined || typeof madeFrom === 'string') &&
    (options === undefined || (typeof options === 'object' && options !== null && !Array.isArray(options)));
  if (!isNote) throw new Error('a field is missing or invalid');
  return { version, format, shards, otherIndexes, madeFrom, options } as PackNote;
}

/** Throws {@link OutputNotEmptyError} if the note is invalid. */
export function readNote(folder: string): PackNote {
  const path = join(folder, PACK_NOTE_FILE);
  try {
    return checkNote(JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    const message = `${path} does not list the shards next to it; empty the folder yourself, or pack to another folder.`;
    throw new OutputNotEmptyError({ path }, message, { cause });
  }
}

export async function writeNote(folder: string, note: PackNote): Promise<void> {
  await writeAtomically(join(folder, PACK_NOTE_FILE), Buffer.from(`${JSON.stringify(note)}\n`));
}

/** True if this source and these options give the shards that are, or will be, in the folder. */
export function isMadeFrom(folder: string, digest: string): boolean {
  return existsSync(join(folder, PACK_NOTE_FILE)) && readNote(folder).madeFrom === digest;
}

/** Adds shards that a change will write, so that the note names them if it is killed. A folder without a note is not changed. */
export async function noteShards(folder: string, stems: readonly string[]): Promise<void> {
  if (!existsSync(join(folder, PACK_NOTE_FILE))) return;
  const note = readNote(folder);
  await writeNote(folder, { ...note, shards: [...new Set([...note.shards, ...stems])] });
}

/** Records that the shards in the folder are no longer as they were made. */
export async function forgetMadeFrom(folder: string): Promise<void> {
  if (!existsSync(join(folder, PACK_NOTE_FILE))) return;
  const { madeFrom, ...note } = readNote(folder);
  if (madeFrom !== undefined) await writeNote(folder, note);
}

/** Indexes for other loaders that shardtool made in a folder; none without a note. */
export function notedIndexes(folder: string): readonly OtherIndex[] {
  return existsSync(join(folder, PACK_NOTE_FILE)) ? readNote(folder).otherIndexes : [];
}

/**
 * Notes that indexes for other loaders were made for existing shards. From now on they are removed when the shards are
 * replaced, and extended when shards are added. A folder without a note is not changed.
 */
export async function noteOtherIndexes(folder: string, wanted: readonly OtherIndex[]): Promise<void> {
  if (!existsSync(join(folder, PACK_NOTE_FILE)) || isNoted(readNote(folder), wanted)) return;
  // Other processes may write the note at the same moment.
  await inLockedFolder(folder, async () => {
    const note = readNote(folder);
    const otherIndexes = [...new Set([...note.otherIndexes, ...wanted])];
    if (!isNoted(note, wanted)) await writeNote(folder, { ...note, otherIndexes });
  });
}

function isNoted({ otherIndexes }: PackNote, wanted: readonly OtherIndex[]): boolean {
  return wanted.every((index) => otherIndexes.includes(index));
}
