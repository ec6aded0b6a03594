import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, writeAtomically } from '@shardtool/base';
import type { ColumnType, WrittenLayoutName } from '@shardtool/format';
import type { OtherIndex } from '../options.js';
import { OPEN, type Part } from '../part.js';
import { numberedStem } from '../shard/shard-paths.js';
import { SHARD_STEM } from './pack-note.js';
import { STATE_FOLDER } from './pack-state.js';
import { noteText, readNoteText } from './shard-note.js';

/** Options that all parts of a writer share, because they form one dataset. */
export interface PartOptions {
  readonly format: WrittenLayoutName;
  readonly index: readonly OtherIndex[];
  readonly name: string;
  /** Names of the classes, in the order of their numbers. */
  readonly classes: readonly string[];
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[];
  /** The run that the part belongs to, as in `WriterOptions`. */
  readonly job?: string | undefined;
  /** Further options that the bytes of a shard depend on. */
  readonly [option: string]: unknown;
}

/** Note of a part of a writer, below the output folder until the dataset is committed. */
export interface PartNote {
  readonly version: 1;
  readonly part: Part;
  /** Distinguishes two runs of the same part. */
  readonly token: string;
  readonly options: PartOptions;
  /** Names of its shards in order, including the one that is being written. */
  readonly stems: readonly string[];
  /** True if every shard is complete and no more follow. */
  readonly isFinished: boolean;
}

const PART_NOTE = /^part-\d+-of-\d+$/;

/**
 * Name of shard `number` of a part: `train-02-of-16-000000`, or `train-000002-000000` if the number of parts is open.
 * Sorted by name, shards are in the order of the parts.
 */
export function partStem(name: string, { number, count }: Part, shard: number): string {
  if (count === OPEN) return numberedStem(`${name || 'part'}-${String(number).padStart(6, '0')}`, shard);
  const part = `${String(number).padStart(String(count).length, '0')}-of-${count}`;
  return numberedStem(name === '' ? part : `${name}-${part}`, shard);
}

/** Path of a part's note, below the output folder. */
export function partNoteName({ number, count }: Part): string {
  return `${STATE_FOLDER}/part-${number}-of-${count}`;
}

/** True if a file below the output folder is the note of a part. */
export function isPartNote(name: string): boolean {
  return name.startsWith(`${STATE_FOLDER}/`) && PART_NOTE.test(name.slice(STATE_FOLDER.length + 1));
}

/** Throws {@link FileError}. */
export async function writePartNote(output: string, note: PartNote): Promise<void> {
  makeFolder(join(output, STATE_FOLDER));
  await writeAtomically(join(output, partNoteName(note.part)), noteText(note));
}

/** Notes of all parts that were started, in order. Damaged notes are ignored. */
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
