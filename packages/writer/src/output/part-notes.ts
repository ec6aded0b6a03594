import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, writeAtomically } from '@shardtool/base';
import type { ColumnType, WrittenLayoutName } from '@shardtool/format';
import type { OtherIndex } from '../shard/other-indexes.js';
import { numberedStem } from '../shard/shard-paths.js';
import { SHARD_STEM } from './pack-note.js';
import { STATE_FOLDER } from './pack-state.js';
import type { Part } from './parts.js';
import { noteText, readNoteText } from './shard-note.js';

/** What all parts of a writer have in common: one dataset is made of them. */
export interface PartOptions {
  readonly format: WrittenLayoutName;
  readonly index: readonly OtherIndex[];
  readonly name: string;
  /** In the order of their numbers. */
  readonly classes: readonly string[];
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[];
  /** Further options that a byte of a shard depends on. */
  readonly [option: string]: unknown;
}

/** What a part of a writer notes down of itself, below the output folder, until the dataset is committed. */
export interface PartNote {
  readonly version: 1;
  readonly part: Part;
  /** Tells two runs of one part apart. */
  readonly token: string;
  readonly options: PartOptions;
  /** What its shards are called, in their order, the one that is being written too. */
  readonly stems: readonly string[];
  /** Every shard is whole, and no more come. */
  readonly isFinished: boolean;
}

const PART_NOTE = /^part-\d+-of-\d+$/;

/** `2/4`, as a person writes it. */
export function partText({ number, count }: Part): string {
  return `${number}/${count}`;
}

/** What shard `number` of a part is called: `train-02-of-16-000000`; sorted by name they come in the order of the parts. */
export function partStem(name: string, { number, count }: Part, shard: number): string {
  const part = `${String(number).padStart(String(count).length, '0')}-of-${count}`;
  return numberedStem(name === '' ? part : `${name}-${part}`, shard);
}

/** The note of a part, below the output folder. */
export function partNoteName({ number, count }: Part): string {
  return `${STATE_FOLDER}/part-${number}-of-${count}`;
}

/** Whether a file below the output folder is such a note. */
export function isPartNote(name: string): boolean {
  return name.startsWith(`${STATE_FOLDER}/`) && PART_NOTE.test(name.slice(STATE_FOLDER.length + 1));
}

/** Throws {@link FileError}. */
export async function writePartNote(output: string, note: PartNote): Promise<void> {
  makeFolder(join(output, STATE_FOLDER));
  await writeAtomically(join(output, partNoteName(note.part)), noteText(note));
}

/** The notes of all parts that were begun, in their order. One that is damaged counts as none. */
export function readPartNotes(output: string): readonly PartNote[] {
  return stateFiles(output)
    .filter((file) => PART_NOTE.test(file))
    .map((file) => readNoteText<PartNote>(join(output, STATE_FOLDER, file)))
    .filter((note) => note?.version === 1 && note.stems.every((stem) => SHARD_STEM.test(stem)))
    .map((note) => note!)
    .sort((a, b) => a.part.number - b.part.number);
}

function stateFiles(output: string): string[] {
  try {
    return readdirSync(join(output, STATE_FOLDER));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
