import { existsSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, statfsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import {
  FileError,
  type Lock,
  makeFolder,
  OptionError,
  option,
  parseTemporaryName,
  reasonOf,
  remedyOf,
  removeLeftWithoutName,
  removeTemporaries,
  type Sentence,
  sentence,
} from '@shardtool/base';
import {
  earlierSidecarPath,
  entryOf,
  hiddenFolder,
  isVersionFile,
  MANIFEST_FILE,
  type OutputLayout,
  type OutputLayoutName,
  ownerOf,
  PACK_NOTE_FILE,
  type SidecarName,
  sidecarOfShard,
  sidecarPath,
  sidecarPaths,
  VERSIONS_FOLDER,
} from '@shardtool/format';
import { DiskFullError, OutputNotEmptyError } from '../errors.js';
import { type HeldOutput, LOCK_FILE, lockFolderPatiently } from '../folder-lock.js';
import type { OtherIndex } from '../options.js';
import type { Part } from '../part.js';
import { shardPaths } from '../shard/shard-paths.js';
import { LIST_FILES } from './lists.js';
import { isMadeFrom, type PackNote, readNote, SHARD_STEM, writeNote } from './pack-note.js';
import { findPlan, noteName, planPath, removeState, STATE_FOLDER } from './pack-state.js';
import { readPartNotes } from './part-notes.js';
import { checkNeighbours, isLockFile, partLock } from './parts.js';
import { QUARANTINE_FILE } from './quarantine.js';

/**
 * What a pack finds in its output folder, and what it does then:
 *
 * - `nothing`, or only pack.json and a `pack.state` without a plan: it starts.
 * - `plan`, without dataset.json (or with it, if it appends): it resumes. Shards whose note matches are kept, all
 * others are written.
 * - `dataset` of the same source and options: there is nothing to do.
 *
 * It refuses anything else, and a plan of other files or options. `overwrite` replaces what pack.json lists, and
 * `restart` discards an unfinished pack.
 */
export type PackState = 'nothing' | 'dataset' | 'plan';

/** Input of the shards, as in {@link PackNote}. */
interface MadeOf {
  readonly madeFrom?: string | undefined;
  readonly options?: PackNote['options'];
}

/** Files that exist before the plan. A pack that is killed at that point has made no shard. */
const OF_BEGINNING: readonly string[] = [PACK_NOTE_FILE, STATE_FOLDER];

/** The output folder of a pack: created if needed, and locked until {@link OutputFolder.release}. */
export class OutputFolder {
  readonly path: string;
  /** The folders that were created for it, itself first. */
  readonly #made: readonly string[];
  readonly #lock: Lock;
  /** Shards that were announced. */
  #shards: readonly string[] = [];
  /** Options with which the existing shards were made. */
  #options: PackNote['options'];

  private constructor(path: string, made: readonly string[], lock: Lock) {
    this.path = path;
    this.#made = made;
    this.#lock = lock;
  }

  /** The lock, for all that write to this folder, including other threads. */
  get lock(): HeldOutput {
    const { path, token } = this.#lock;
    return { path, token };
  }

  /**
   * Opens the folder for a pack of the whole dataset, or for one of several parts. Throws {@link OutputLockedError} if
   * a process that must not run at the same time uses it, and {@link FileError} if it cannot be created.
   */
  static async open(path: string, part: Part | null = null, signal?: AbortSignal): Promise<OutputFolder> {
    try {
      const made = missingOf(path);
      makeFolder(path);
      const lock = await lockFolderPatiently(path, part === null ? LOCK_FILE : partLock(part), signal);
      const folder = new OutputFolder(path, made, lock);
      removeLeftWithoutName(path);
      try {
        checkNeighbours(path, part);
      } catch (error) {
        folder.release();
        throw error;
      }
      return folder;
    } catch (cause) {
      if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
      const message = `The output folder ${path} cannot be written to: ${reasonOf(cause)}; ${remedyOf(cause)}.`;
      throw new FileError({ path }, message, { cause });
    }
  }

  /**
   * Determines what an earlier pack left here: a dataset, a plan to resume, or nothing that must be kept. Throws {@link
   * OutputNotEmptyError} if something else is in the folder, unless it may be replaced.
   */
  look({ overwrite, restart }: { readonly overwrite: boolean; readonly restart: boolean }): PackState {
    const entries = this.#entries();
    if (overwrite) return 'nothing';
    if (entries.includes(MANIFEST_FILE)) return 'dataset';
    if (restart && entries.includes(PACK_NOTE_FILE)) return 'nothing';
    if (existsSync(planPath(this.path))) return 'plan';
    // Lists are written between the note and the plan; without a note they are not shardtool's.
    const ours = new Set([...OF_BEGINNING, ...(entries.includes(PACK_NOTE_FILE) ? LIST_FILES : [])]);
    const others = entries.filter((entry) => !ours.has(finalNameOf(entry)));
    // A pack that ended before its plan was written has no shards.
    if (others.length === 0) return 'nothing';
    // Parts may have committed between the two checks.
    if (existsSync(join(this.path, MANIFEST_FILE))) return 'dataset';
    throw notEmpty(this.path, entries);
  }

  /** Throws {@link OutputNotEmptyError}, because there is a dataset; `mayGrow`: images could be added to it. */
  refuseDataset(mayGrow = false): never {
    const hint = mayGrow ? sentence` To add the images that are new since then, use ${option('append')}.` : '';
    throw notEmpty(this.path, this.#entries(), hint);
  }

  /**
   * Removes what a pack that was killed just after its commit left next to the dataset. The state of a pack that adds
   * to the dataset is kept.
   */
  removeLeftState(): void {
    if (!isGrowing(this.path)) removeState(this.path);
  }

  /**
   * Checks whether the contents of the folder have the same source and options. Null if it should be made as if the
   * folder were empty. Throws {@link OutputNotEmptyError} if something else is in the folder, unless it may be
   * replaced.
   */
  lookForSame(madeFrom: string | null, overwrite: boolean): Exclude<PackState, 'nothing'> | null {
    const entries = this.#entries();
    if (entries.length === 0 || overwrite) return null;
    if (madeFrom === null || !isMadeFrom(this.path, madeFrom)) throw notEmpty(this.path, entries);
    return entries.includes(MANIFEST_FILE) ? 'dataset' : 'plan';
  }

  /** Shards announced next are added to those that an earlier pack has noted. */
  keepNoted(): void {
    const { shards, options } = readNote(this.path);
    this.#shards = shards;
    this.#options = options;
  }

  /** The note of the existing shards. */
  noted(): PackNote {
    return readNote(this.path);
  }

  /** Removes what an unfinished pack that adds to the dataset has left. `named` are shards of any version that is kept. */
  clearAdded(layout: OutputLayout, named: ReadonlySet<string>): void {
    const added: string[] = [];
    for (const stem of readNote(this.path).shards) {
      const paths = shardPaths(layout, stem);
      if (named.has(paths.file)) continue;
      this.#remove(paths.file, ...paths.sidecars);
      added.push(stem);
    }
    this.#removeTemporary(filesOf(layout, added));
    removeState(this.path);
  }

  /** Discards the plan of an unfinished pack, and keeps the shards that it made. */
  discardPlan(): void {
    removeState(this.path);
  }

  #entries(): string[] {
    return readdirSync(this.path).filter((entry) => !isLockFile(entry));
  }

  /** Removes what an earlier pack left here, and nothing else. */
  async clear(): Promise<void> {
    this.#removeTemporary([PACK_NOTE_FILE, MANIFEST_FILE, ...LIST_FILES]);
    if (!existsSync(join(this.path, PACK_NOTE_FILE))) {
      removeState(this.path);
      return;
    }
    const note = readNote(this.path);
    const layout = entryOf(note.format);
    const hidden = layout.shardFolder && { ...layout, shardFolder: hiddenFolder(layout.shardFolder) };
    // The manifest is removed first and the note last, so that the state in between is an unfinished pack.
    this.#remove(MANIFEST_FILE, ...LIST_FILES);
    this.#removeVersions();
    this.#remove(...sidecarPaths(note.otherIndexes), ...listOf(note.format));
    const stems = [...note.shards, ...readPartNotes(this.path).flatMap((part) => part.stems)];
    const layouts = [layout, ...(hidden ? [hidden] : [])];
    for (const paths of stems.flatMap((stem) => layouts.map((one) => shardPaths(one, stem)))) {
      const kinds = ['index', ...note.otherIndexes] as const;
      this.#remove(paths.file, ...kinds.flatMap((kind) => placesInPack(kind, paths.file)));
      for (const findings of placesInPack('inspection', paths.file)) {
        if ((await ownerOf('inspection', join(this.path, findings))) === 'shardtool') this.#remove(findings);
      }
    }
    for (const one of layouts) this.#removeTemporary(filesOf(one, stems));
    for (const { shardFolder } of layouts) {
      if (shardFolder !== undefined) removeIfEmpty(join(this.path, shardFolder));
    }
    removeState(this.path);
    this.#remove(PACK_NOTE_FILE);
  }

  /** Removes the records of changes, and not what others have put next to them. */
  #removeVersions(): void {
    const folder = join(this.path, VERSIONS_FOLDER);
    if (!existsSync(folder)) return;
    const names = readdirSync(folder, { recursive: true }) as string[];
    this.#remove(...names.map((name) => `${VERSIONS_FOLDER}/${name.replaceAll('\\', '/')}`).filter(isVersionFile));
    for (const name of ['pending', 'log', '']) removeIfEmpty(join(folder, name));
  }

  /**
   * Notes the shards that will be made, in addition to those of earlier calls, and their indexes for other loaders.
   * `made` is described in {@link PackNote}. Throws {@link OutputNotEmptyError} if a file is in the way, and {@link
   * OptionError} for an invalid shard name.
   */
  async announce(
    layout: OutputLayout,
    stems: readonly string[],
    otherIndexes: readonly OtherIndex[],
    made: MadeOf = {},
  ): Promise<void> {
    const wrong = stems.find((stem) => !SHARD_STEM.test(stem));
    if (wrong !== undefined) {
      const message = `Invalid shard name ${JSON.stringify(wrong)}: it must not begin with a dot or contain "/", "\\" or ":".`;
      throw new OptionError({ shard: wrong }, message);
    }
    const taken = new Set(readdirSync(this.path));
    const ofFolder = [
      ...[MANIFEST_FILE, QUARANTINE_FILE, PACK_NOTE_FILE],
      ...[...sidecarPaths(otherIndexes), ...listOf(layout.name)],
      ...(layout.shardFolder === undefined ? [] : [layout.shardFolder, hiddenFolder(layout.shardFolder)]),
    ];
    const wanted = this.#shards.length === 0 ? ofFolder : [];
    for (const stem of stems) {
      const { file, folder } = shardPaths(layout, stem);
      wanted.push(folder ?? file, ...sidecarOfShard(file, ['index', ...otherIndexes]));
    }
    const inTheWay = wanted.filter((file) => taken.has(file));
    if (inTheWay.length > 0) throw notEmpty(this.path, inTheWay);
    this.#shards = [...new Set([...this.#shards, ...stems])];
    await this.#note(layout, otherIndexes, made);
  }

  /** Hides the folder of shards from other tools until {@link show}. */
  hide(shardFolder: string | undefined): void {
    if (shardFolder === undefined) return;
    const [shown, hidden] = [join(this.path, shardFolder), join(this.path, hiddenFolder(shardFolder))];
    // A process killed just before the commit had already shown it.
    if (existsSync(shown) && !existsSync(hidden)) renameSync(shown, hidden);
  }

  /** Moves the folder of complete shards to its final path. */
  show(shardFolder: string | undefined): void {
    if (shardFolder !== undefined) renameSync(join(this.path, hiddenFolder(shardFolder)), join(this.path, shardFolder));
  }

  /**
   * Notes the shards of a plan in the folder, if the process that wrote the plan was killed before it wrote the note.
   */
  async announcePlanned(
    layout: OutputLayout,
    stems: readonly string[],
    otherIndexes: readonly OtherIndex[],
    made: MadeOf = {},
  ): Promise<void> {
    if (existsSync(join(this.path, PACK_NOTE_FILE))) return;
    this.#shards = stems;
    await this.#note(layout, otherIndexes, made);
  }

  async #note(layout: OutputLayout, otherIndexes: readonly OtherIndex[], { madeFrom, options }: MadeOf): Promise<void> {
    const ofAll = this.#options ?? options;
    const note: PackNote = {
      version: 1,
      format: layout.name,
      shards: [...this.#shards],
      otherIndexes: [...otherIndexes],
      ...(madeFrom !== undefined && { madeFrom }),
      ...(ofAll !== undefined && { options: ofAll }),
    };
    await writeNote(this.path, note);
  }

  /**
   * Removes temporary files of shards that a killed process or thread has left; no other process may be writing them.
   */
  removeTemporaryFiles(layout: OutputLayout, stems: Iterable<string> = this.#shards): void {
    const all = [...stems];
    this.#removeTemporary([...filesOf(layout, all), ...all.map(noteName)]);
  }

  /** Throws {@link DiskFullError} if the disk has less space than `bytes`, which `what` needs. */
  checkRoom(bytes: number, what: string): void {
    const { bavail, bsize, blocks } = statfsSync(this.path);
    const free = bavail * bsize;
    if (blocks === 0 || free >= bytes) return;
    const message = `${what} needs ${megabytes(bytes)}, but ${this.path} has only ${megabytes(free)} free; free some space, or choose a folder on another disk.`;
    throw new DiskFullError({ path: this.path }, message);
  }

  /** Releases the lock, and removes the folder and its parents if they were created here and are empty. */
  release(): void {
    this.#lock.release();
    for (const folder of this.#made) removeIfEmpty(folder);
  }

  #remove(...files: string[]): void {
    for (const file of files) rmSync(join(this.path, file), { force: true });
  }

  /**
   * Removes temporary files of these files, named below the folder, that a killed process has left; no other process
   * may be writing them.
   */
  #removeTemporary(files: readonly string[]): void {
    const namesIn = new Map<string, Set<string>>();
    for (const file of files) {
      const folder = dirname(file);
      namesIn.set(folder, (namesIn.get(folder) ?? new Set()).add(basename(file)));
    }
    for (const [folder, finals] of namesIn) {
      removeTemporaries(join(this.path, folder), finals);
      if (folder !== '.' && folder !== STATE_FOLDER) removeIfEmpty(join(this.path, folder));
    }
  }
}

/** Possible paths of a sidecar file of a shard below the output folder, including those of earlier versions. */
function placesInPack(kind: SidecarName, shard: string): string[] {
  const earlier = earlierSidecarPath(kind, shard);
  return [sidecarPath(kind, shard), ...(earlier === null ? [] : [earlier])];
}

/** Paths below the output folder of all files of these shards, except notes. */
function filesOf(
  layout: Pick<OutputLayout, 'extension' | 'innerFile' | 'shardFolder'>,
  stems: readonly string[],
): string[] {
  return stems.flatMap((stem) => {
    const { file, sidecars } = shardPaths(layout, stem);
    return [file, ...sidecars];
  });
}

/** The final name of a temporary file; for other files, their own name. */
function finalNameOf(name: string): string {
  return parseTemporaryName(name)?.final ?? name;
}

/** The list of all shards that other tools require. */
function listOf(layout: OutputLayoutName): string[] {
  const { listFile } = entryOf(layout);
  return listFile === undefined ? [] : [listFile];
}

/** The folder and its parents that do not exist, itself first. */
function missingOf(path: string): string[] {
  const missing: string[] = [];
  for (let folder = resolve(path); !existsSync(folder); folder = dirname(folder)) missing.push(folder);
  return missing;
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // It does not exist, or is not empty.
  }
}

/** True if an unfinished pack was adding to the dataset in the folder. */
function isGrowing(folder: string): boolean {
  try {
    const base = findPlan(folder)?.base;
    return (
      base !== undefined && base.identity === JSON.parse(readFileSync(join(folder, MANIFEST_FILE), 'utf8')).identity
    );
  } catch {
    return false;
  }
}

/** Throws {@link OutputNotEmptyError} if the folder contains anything. A locked folder is left to {@link OutputFolder.open}. */
export function refuseTaken(path: string): void {
  const entries = readdirSync(path);
  if (entries.length > 0 && !entries.some(isLockFile)) throw notEmpty(path, entries);
}

function notEmpty(path: string, entries: readonly string[], hint: string | Sentence = ''): OutputNotEmptyError {
  let remedy = sentence`pack to another folder, or replace the output of the earlier pack with ${option('overwrite')}`;
  let what = `holds ${entries[0]}${entries.length > 1 ? ` and ${entries.length - 1} more` : ''}`;
  if (entries.includes(MANIFEST_FILE)) what = 'already contains a dataset';
  else if (entries.includes(PACK_NOTE_FILE)) what = 'contains an unfinished pack';
  else
    remedy = sentence`pack to another folder, or empty this one: ${option('overwrite')} removes only files that a pack made`;
  return new OutputNotEmptyError({ path }, sentence`The output folder ${path} ${what}; ${remedy}.${hint}`);
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6).toLocaleString('en')} MB`;
}
