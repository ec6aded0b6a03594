import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { option, sentence } from '@shardtool/base';
import { MANIFEST_FILE, PACK_NOTE_FILE, shardNameOf } from '@shardtool/format';
import { OutputLockedError, OutputNotEmptyError, PartFinishedError, PlanChangedError } from '../errors.js';
import { OUTPUT_OPTIONS } from '../option-table.js';
import type { CheckedOutputOptions } from '../options.js';
import { commitOnce } from '../output/commit-once.js';
import type { Destination } from '../output/destination.js';
import { OutputFolder } from '../output/output-folder.js';
import { type PackNote, writeNote } from '../output/pack-note.js';
import { isCommitted, noteName, STATE_FOLDER } from '../output/pack-state.js';
import {
  type PartNote,
  type PartOptions,
  partNoteName,
  partStem,
  readPartNotes,
  writePartNote,
} from '../output/part-notes.js';
import { isLockFile } from '../output/parts.js';
import { noteShard } from '../output/shard-note.js';
import { OPEN, type Part, partText } from '../part.js';
import { changedOptions } from '../plan/plan-changes.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { filesOfShard } from '../shard/shard-paths.js';
import { joinParts, missingParts } from './join-parts.js';
import { listed, type OutputFacts, openOutput, type WriterOutput } from './writer-output.js';

/**
 * Opens the output for one part of a dataset, to which other processes write other parts. The notes are below
 * `pack.state`: one of each part, with the names of its shards, and one of each finished shard. No process writes a
 * file that another one writes, also in a bucket. The part that finds all others finished makes the dataset.
 *
 * A part that was interrupted starts again from the beginning, since it may now receive other samples. A finished part
 * is written again only with `overwrite`. Parts whose number is open are committed by {@link commitParts} alone.
 *
 *     pack.json                       the same bytes whichever part is first; names all shards when the parts are
 * joined
 *     pack.state/part-2-of-4          options, names of the shards, whether it is finished
 *     pack.state/2-of-4-000000.json   note: this shard is finished
 *     2-of-4-000000.tar  .parquet     shards of part 2
 *
 *     writing ── close ──► finished ── the last one: keys are compared ──► dataset.json
 *
 * Throws {@link OutputNotEmptyError} if the folder contains something else, {@link PartFinishedError} if the same job
 * has finished the part, and {@link PlanChangedError} if other parts
 * were started with other options.
 */
export async function openPart(
  output: string,
  part: Part,
  options: CheckedOutputOptions,
  facts: OutputFacts,
  job: string | undefined,
): Promise<WriterOutput> {
  return openOutput(output, { ...options, part: partText(part) }, async (destination) => {
    const folder = await OutputFolder.open(destination.folder, part, options.signal);
    return new PartOutput(folder, destination, part, options, facts, job);
  });
}

class PartOutput implements WriterOutput {
  readonly folder: OutputFolder;
  readonly destination: Destination;
  readonly #facts: OutputFacts;
  readonly #overwrite: boolean;
  readonly #signal: AbortSignal | undefined;
  #note: PartNote;

  constructor(
    folder: OutputFolder,
    destination: Destination,
    part: Part,
    options: CheckedOutputOptions,
    facts: OutputFacts,
    job: string | undefined,
  ) {
    this.folder = folder;
    this.destination = destination;
    this.#facts = facts;
    this.#overwrite = options.overwrite;
    this.#signal = options.signal;
    const shared = { ...sharedOptions(options, facts), ...(job !== undefined && { job }) };
    this.#note = { version: 1, part, token: randomUUID(), options: shared, stems: [], isFinished: false };
  }

  async prepare(): Promise<void> {
    const { path } = this.folder;
    const { part } = this.#note;
    refuseTakenPart(path, part, this.#overwrite);
    this.#refuseOthers();
    const before = this.#othersFit().find((note) => note.part.number === part.number);
    if (before !== undefined && before.options.job !== this.#note.options.job)
      throw changed(path, part, 'it belongs to another job');
    if (before?.isFinished && before.options.job !== undefined) throw isFinishedByJob(path, part);
    if (before !== undefined) {
      // If the process is killed in between, the part is not finished.
      await this.#write({ stems: before.stems });
      this.#removeShards(before.stems);
      await this.destination.removeGone();
    }
    await this.#write({ stems: [] });
    // Another part may have started at the same moment. If two do not fit, at least one of them sees the other.
    this.#othersFit();
    await this.#notePack();
    await this.destination.sendNotes();
  }

  async begin(number: number): Promise<string> {
    const { part, options, stems } = this.#note;
    const stem = partStem(options.name, part, number);
    const there = new Set(readdirSync(this.folder.path));
    const files = filesOfShard(this.#facts.layout, stem, options.index);
    const inTheWay = files.find((file) => there.has(shardNameOf(file)));
    if (inTheWay !== undefined) throw holds(this.folder.path, inTheWay);
    await this.#write({ stems: [...stems, stem] });
    return stem;
  }

  async made(stem: string, record: ShardRecord): Promise<void> {
    const { layout, columns } = this.#facts;
    const { part, options } = this.#note;
    const target = {
      output: this.folder.path,
      layout,
      otherIndexes: options.index,
      columnTypes: columns,
      maxSampleBytes: 0,
    };
    await noteShard(target, stem, partNoteName(part), record);
    const files = filesOfShard(layout, stem, options.index);
    await this.destination.sendShard(files, noteName(stem), files.slice(0, -1));
  }

  async finish(): ReturnType<WriterOutput['finish']> {
    const { path } = this.folder;
    const { part, token } = this.#note;
    await this.destination.fetch(false);
    if (this.#found()?.token !== token) throw takenOver(path, part);
    await this.#write({ isFinished: true });
    // Fetches the notes of other parts. A part that commits at this moment removes the notes; dataset.json exists then.
    await this.destination.fetch(false);
    if (this.#found() === undefined) await this.destination.fetch(false);
    if (part.count === OPEN) return { pendingParts: [], partialFields: [], isCommitted: false };
    const pendingParts = isCommitted(path) ? [] : missingParts(readPartNotes(path), part.count);
    if (pendingParts.length > 0) return { pendingParts, partialFields: [], isCommitted: false };
    const partialFields = await commitOnce(path, (lock) => joinParts(this.destination, lock), this.#signal);
    if (partialFields !== null) await this.destination.commit();
    return { pendingParts, partialFields: partialFields ?? [], isCommitted: true };
  }

  clean(): void {
    this.folder.removeTemporaryFiles(this.#facts.layout, this.#note.stems);
  }

  /** Returns the existing note of this part. */
  #found(): PartNote | undefined {
    return readPartNotes(this.folder.path).find(({ part }) => part.number === this.#note.part.number);
  }

  async #write(change: Partial<PartNote>): Promise<void> {
    this.#note = { ...this.#note, ...change };
    await writePartNote(this.folder.path, this.#note);
    await this.destination.sendFile(partNoteName(this.#note.part));
  }

  /** Throws if the folder contains something other than parts of a writer. */
  #refuseOthers(): void {
    const { path } = this.folder;
    const names = readdirSync(path).filter((name) => !isLockFile(name));
    const isBegun = readPartNotes(path).length > 0;
    const others = names.filter((name) => name !== STATE_FOLDER && name !== PACK_NOTE_FILE);
    const isPlanned = existsSync(join(path, STATE_FOLDER, 'plan'));
    if (isPlanned || (!isBegun && others.length > 0)) throw holds(path, others[0] ?? STATE_FOLDER);
  }

  /** Returns the notes in the folder. Throws {@link PlanChangedError} if they belong to parts with other options. */
  #othersFit(): readonly PartNote[] {
    const { path } = this.folder;
    const { part, options } = this.#note;
    const notes = readPartNotes(path);
    for (const other of notes) {
      if (other.part.count !== part.count) {
        throw changed(path, other.part, `there are now ${part.count === OPEN ? 'any number of' : part.count} parts`);
      }
      const change = other.part.number === part.number ? null : changedOptions(other.options, options);
      if (change !== null) throw changed(path, other.part, change);
    }
    return notes;
  }

  #removeShards(stems: readonly string[]): void {
    const { path } = this.folder;
    const { layout } = this.#facts;
    this.folder.removeTemporaryFiles(layout, stems);
    for (const stem of stems) {
      const files = filesOfShard(layout, stem, this.#note.options.index);
      for (const file of [noteName(stem), ...files.toReversed()]) rmSync(join(path, file), { force: true });
    }
    this.folder.removeTemporaryFiles(layout, stems);
  }

  /** Notes that a writer is at work, with the same bytes whichever part is first. */
  async #notePack(): Promise<void> {
    const { path } = this.folder;
    const { options } = this.#note;
    if (existsSync(join(path, PACK_NOTE_FILE))) return;
    const note: PackNote = { version: 1, format: options.format, shards: [], otherIndexes: options.index };
    await writeNote(path, note);
  }
}

/** Throws {@link OutputNotEmptyError} if the folder is a dataset, or the part is finished and must not be replaced. */
export function refuseTakenPart(path: string, part: Part, overwrite: boolean): void {
  if (isCommitted(path)) throw isDataset(path);
  const notes = readPartNotes(path);
  const own = notes.find((note) => note.part.number === part.number);
  const isReplaced = overwrite || own?.part.count !== part.count || own.options.job !== undefined;
  if (own?.isFinished && !isReplaced) throw isFinished(path, part, missingParts(notes, part.count));
}

function sharedOptions(options: CheckedOutputOptions, { classes, columns }: OutputFacts): PartOptions {
  const recorded = Object.entries(OUTPUT_OPTIONS)
    .filter(([, { isRecorded }]) => isRecorded)
    .map(([name]) => [name, options[name as keyof typeof OUTPUT_OPTIONS]]);
  return { ...Object.fromEntries(recorded), classes, columns: listed(columns) } as PartOptions;
}

function holds(path: string, what: string): OutputNotEmptyError {
  const message = `The output folder ${path} contains ${what}, which was not written by a part of a writer; write to another folder, or empty it before you start the first part.`;
  return new OutputNotEmptyError({ path }, message);
}

function isDataset(path: string): OutputNotEmptyError {
  const message = `The output folder ${path} already contains a dataset (${MANIFEST_FILE}): its parts were joined, or it is an earlier dataset; write to another folder, or empty it before you start the first part.`;
  return new OutputNotEmptyError({ path }, message);
}

function isFinished(path: string, part: Part, missing: readonly string[]): OutputNotEmptyError {
  const rest = missing.length === 0 ? ' and so are all others: "shardtool commit" makes the dataset' : '';
  const message = sentence`Part ${partText(part)} of ${path} is finished${rest}; skip it, or write it again with ${option('overwrite')}.`;
  return new OutputNotEmptyError({ path }, message);
}

function isFinishedByJob(path: string, part: Part): PartFinishedError {
  const message = `Part ${partText(part)} of ${path} was finished by another task of this job; skip it.`;
  return new PartFinishedError({ path }, message);
}

function takenOver(path: string, part: Part): OutputLockedError {
  const message = sentence`Another process has started part ${partText(part)} of ${path} in the meantime; make sure that one process writes each part, and write this one again with ${option('overwrite')}.`;
  return new OutputLockedError({ path }, message);
}

function changed(path: string, other: Part, what: string): PlanChangedError {
  const message = `Part ${partText(other)} of ${path} was already started, and ${what}; use the same options for all parts, or empty the folder before you start the first part.`;
  return new PlanChangedError({ path }, message);
}
