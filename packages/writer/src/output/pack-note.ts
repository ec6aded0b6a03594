import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACK_NOTE_FILE, WRITTEN_LAYOUTS, writeDurably } from '@shardtool/format';
import { z } from 'zod';
import { OutputNotEmptyError } from '../errors.js';
import { OTHER_INDEXES, type OtherIndex } from '../shard/other-indexes.js';

/** As dataset.json has them: one name that stays in its folder, on Windows too. */
export const SHARD_STEM = /^[^./\\:\0][^/\\:\0]*$/;

/**
 * What a pack writes first: which shards it is about to make. Beside dataset.json it says that a pack made them; without
 * dataset.json, that the pack did not end.
 */
const NOTE = z.object({
  version: z.literal(1),
  format: z.enum(WRITTEN_LAYOUTS),
  /** What the shards are called, without their ending: never a way out of the folder. */
  shards: z.array(z.string().regex(SHARD_STEM)),
  otherIndexes: z.array(z.enum(OTHER_INDEXES)),
  /**
   * Of the source and the options that the shards are made from: with the same ones all of them would be the same. Absent
   * where they were made in several goes, or have been changed since.
   */
  madeFrom: z.string().optional(),
  /** The options of a pack that its shards depend on, by name: what is added later is packed with the same. Absent in earlier notes. */
  options: z.record(z.string(), z.unknown()).optional(),
});

export type PackNote = z.infer<typeof NOTE>;

/** Throws {@link OutputNotEmptyError} where the note does not say what it should. */
export function readNote(folder: string): PackNote {
  const path = join(folder, PACK_NOTE_FILE);
  try {
    return NOTE.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    const message = `${path} does not say which shards lie beside it; empty the folder by hand, or pack to another one.`;
    throw new OutputNotEmptyError({ path }, message, { cause });
  }
}

export async function writeNote(folder: string, note: PackNote): Promise<void> {
  await writeDurably(join(folder, PACK_NOTE_FILE), Buffer.from(`${JSON.stringify(note)}\n`));
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
  if (!existsSync(join(folder, PACK_NOTE_FILE))) return;
  const note = readNote(folder);
  const otherIndexes = [...new Set([...note.otherIndexes, ...wanted])];
  if (otherIndexes.length > note.otherIndexes.length) await writeNote(folder, { ...note, otherIndexes });
}
