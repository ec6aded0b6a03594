import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomically } from '@shardtool/base';
import { OUTPUT_LAYOUTS, type OutputLayoutName, PACK_NOTE_FILE } from '@shardtool/format';
import { OutputNotEmptyError } from '../errors.js';
import { inLockedFolder } from '../folder-lock.js';
import { OTHER_INDEXES, type OtherIndex } from '../shard/other-indexes.js';

/** As dataset.json has them: one name that stays in its folder, on Windows too. */
export const SHARD_STEM = /^[^./\\:\0][^/\\:\0]*$/;

/**
 * What a pack writes first: which shards it is about to make. Beside dataset.json it says that a pack made them; without
 * dataset.json, that the pack did not end.
 */
export interface PackNote {
  readonly version: 1;
  readonly format: OutputLayoutName;
  /** What the shards are called, without their ending: never a way out of the folder. */
  readonly shards: readonly string[];
  readonly otherIndexes: readonly OtherIndex[];
  /**
   * Of the source and the options that the shards are made from: with the same ones all of them would be the same. Absent
   * where they were made in several goes, or have been changed since.
   */
  readonly madeFrom?: string | undefined;
  /** The options of a pack that its shards depend on, by name: what is added later is packed with the same. Absent in earlier notes. */
  readonly options?: Readonly<Record<string, unknown>> | undefined;
}

/** By hand: a library for this would take as long to load as all else that begins a pack. Throws where it is no note. */
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
  if (!isNote) throw new Error('a field is missing, or not what it should be');
  return { version, format, shards, otherIndexes, madeFrom, options } as PackNote;
}

/** Throws {@link OutputNotEmptyError} where the note does not say what it should. */
export function readNote(folder: string): PackNote {
  const path = join(folder, PACK_NOTE_FILE);
  try {
    return checkNote(JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    const message = `${path} does not say which shards lie beside it; empty the folder by hand, or pack to another one.`;
    throw new OutputNotEmptyError({ path }, message, { cause });
  }
}

export async function writeNote(folder: string, note: PackNote): Promise<void> {
  await writeAtomically(join(folder, PACK_NOTE_FILE), Buffer.from(`${JSON.stringify(note)}\n`));
}

/** Whether the shards in the folder are, or are about to be, those that this source and these options give. */
export function isMadeFrom(folder: string, digest: string): boolean {
  return existsSync(join(folder, PACK_NOTE_FILE)) && readNote(folder).madeFrom === digest;
}

/** The shards in the folder are no longer what they were made as. */
export async function forgetMadeFrom(folder: string): Promise<void> {
  if (!existsSync(join(folder, PACK_NOTE_FILE))) return;
  const { madeFrom, ...note } = readNote(folder);
  if (madeFrom !== undefined) await writeNote(folder, note);
}

/** The indexes for other loaders in a folder that shardtool made; none where no note says so. */
export function notedIndexes(folder: string): readonly OtherIndex[] {
  return existsSync(join(folder, PACK_NOTE_FILE)) ? readNote(folder).otherIndexes : [];
}

/**
 * Indexes for other loaders were made beside shards that are there: from now on they go when the shards are
 * replaced, and grow when shards are added. A folder without a note is none of ours to replace.
 */
export async function noteOtherIndexes(folder: string, wanted: readonly OtherIndex[]): Promise<void> {
  if (!existsSync(join(folder, PACK_NOTE_FILE)) || isNoted(readNote(folder), wanted)) return;
  // Others may note something else at this moment.
  await inLockedFolder(folder, async () => {
    const note = readNote(folder);
    const otherIndexes = [...new Set([...note.otherIndexes, ...wanted])];
    if (!isNoted(note, wanted)) await writeNote(folder, { ...note, otherIndexes });
  });
}

function isNoted({ otherIndexes }: PackNote, wanted: readonly OtherIndex[]): boolean {
  return wanted.every((index) => otherIndexes.includes(index));
}
