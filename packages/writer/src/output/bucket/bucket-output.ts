import { setMaxListeners } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import {
  crc32,
  FileChangedError,
  FileError,
  FileExistsError,
  FileNotFoundError,
  inLanes,
  option,
  sentence,
} from '@shardtool/base';
import {
  MANIFEST_FILE,
  type Manifest,
  PACK_NOTE_FILE,
  readManifest,
  VERSIONS_FOLDER,
  versionFile,
} from '@shardtool/format';
import {
  type Entry,
  openStorage,
  readWholeOf,
  type Storage,
  type StorageOptions,
  shownLocation,
} from '@shardtool/storage';
import { DatasetChangedError, OutputNotEmptyError, PlanChangedError } from '../../errors.js';
import type { ShardRecord } from '../../shard/new-shard.js';
import type { Destination } from '../destination.js';
import { replaceFile } from '../keep-version.js';
import { isLockFile } from '../parts.js';
import { addToNote, crc32OfFile, readNoteText } from '../shard-note.js';
import { inTurnOfRemoval, isNote, isReadHere, PLAN, SHARD_SIDECARS } from './bucket-files.js';
import { keepSize, openStagingFolder, type StagingFolder, showBySize } from './staging-folder.js';

/** Number of shards that are uploaded concurrently, each in several parts. */
export const SENT_AT_ONCE = 2;
/** Number of small files that are downloaded concurrently. */
const FETCHED_AT_ONCE = 32;
/** A prefix with more objects is probably a mistake. */
const MOST_OBJECTS = 200_000;
const PIECE_BYTES = 8 << 20;

export interface StagingOptions {
  /** The part, if several pack to the same location. */
  readonly part: string | undefined;
  /** Folder in which the local folder is made. Default: the system's temporary folder. */
  readonly staging: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Options for requests to the bucket. */
  readonly storage?: StorageOptions | undefined;
}

/**
 * A bucket as the output of a dataset. The local folder, in which shards are made, mirrors the bucket: files that a
 * pack reads are complete, and of all others only name and size are shown (files without content). The rules of a
 * folder therefore apply to the bucket, and what they remove from the folder is removed from the bucket.
 *
 * Order in the bucket: the plan (only if absent), pack.json, each shard with its indexes and then its note,
 * dataset.json (only if absent, or for a dataset that grows only if it is still the one that was read). Then plan and
 * notes are removed. There is no lock: if two processes plan, the first
 * plan counts, and equal parts write equal bytes.
 */
export class BucketOutput implements Destination {
  readonly location: string;
  readonly place: string;
  readonly folder: string;
  readonly isElsewhere = true;
  readonly #storage: Storage;
  readonly #staging: StagingFolder;
  readonly #stopped = new AbortController();
  /** Objects in the bucket by name, and the file that shows each in the folder. */
  readonly #there = new Map<string, { readonly entry: Entry; readonly shadow: string; readonly isShown?: true }>();
  /** The dataset that was found; null if there was none. */
  #before: Manifest | null = null;
  readonly #sending = new Set<Promise<void>>();
  #failures: unknown[] = [];
  /** Version of the plan in the bucket, which all parts use. */
  #planVersion: string | null = null;

  private constructor(place: string, storage: Storage, staging: StagingFolder, signal: AbortSignal | undefined) {
    this.location = shownLocation(place);
    this.place = place;
    this.folder = staging.path;
    this.#staging = staging;
    this.#storage = storage;
    // One listener for each concurrent request.
    setMaxListeners(0, this.#stopped.signal);
    const stop = () => this.#stopped.abort(signal!.reason);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  }

  static async open(place: string, { part, staging, signal, storage: how }: StagingOptions): Promise<BucketOutput> {
    const storage = await openStorage(place, how);
    return new BucketOutput(
      place,
      storage,
      await openStagingFolder(shownLocation(place), part, staging, signal),
      signal,
    );
  }

  async fetch(recheck: boolean): Promise<void> {
    await this.whenSent();
    for (const name of readdirSync(this.folder)) {
      if (!isLockFile(name)) rmSync(join(this.folder, name), { recursive: true, force: true });
    }
    this.#there.clear();
    for await (const entry of this.#storage.list('', { deep: true, signal: this.#stopped.signal })) {
      if (this.#there.size === MOST_OBJECTS) throw tooMany(this.location);
      this.#there.set(entry.name, { entry, shadow: showBySize(this.folder, entry), isShown: true });
    }
    const read = [...this.#there.keys()].filter((name) => isReadHere(name) || isNote(name));
    await inLanes(read, FETCHED_AT_ONCE, (name) => this.#fetchFile(name));
    await inLanes(read.filter(isNote), recheck ? SENT_AT_ONCE : FETCHED_AT_ONCE, async (name) => {
      if (!(await this.#isAsNoted(name, recheck))) rmSync(join(this.folder, name), { force: true });
    });
    this.#planVersion ??= this.#there.get(PLAN)?.entry.version ?? null;
    // A damaged dataset.json can be replaced.
    this.#before = await readManifest(this.folder).catch(() => null);
  }

  async fetchFiles(names: readonly string[]): Promise<void> {
    await inLanes(names, FETCHED_AT_ONCE, (name) => this.#fetchFile(name));
  }

  async removeGone(): Promise<void> {
    const gone = [...this.#there].filter(([, { shadow }]) => !existsSync(join(this.folder, shadow)));
    await this.#refuseLostFiles(new Set(gone.map(([name]) => name)));
    for (const names of inTurnOfRemoval(gone.map(([name]) => name))) {
      await inLanes(names, FETCHED_AT_ONCE, async (name) => {
        await this.#storage.remove(name, this.#stopped.signal);
        this.#there.delete(name);
      });
    }
  }

  async placePlan(path: string): Promise<void> {
    try {
      await this.#putOnce(PLAN, path);
    } catch (error) {
      if (!(error instanceof FileExistsError)) throw error;
      await writeFile(path, await this.#read(PLAN));
    }
    this.#planVersion = (await this.#storage.entry(PLAN))?.version ?? null;
  }

  async sendNotes(): Promise<void> {
    for (const name of SHARD_SIDECARS) {
      const path = join(this.folder, name);
      if (!existsSync(path) || this.#isShown(name)) continue;
      if (name === PACK_NOTE_FILE && !this.#there.has(name)) {
        await this.#putOnce(name, path).catch((error) => {
          throw error instanceof FileExistsError ? anotherDataset(this.location) : error;
        });
        continue;
      }
      await this.sendFile(name);
    }
  }

  async sendFile(name: string): Promise<void> {
    const path = join(this.folder, name);
    await this.#storage.put(name, { file: path }, { signal: this.#stopped.signal });
    await this.#sent(name, statSync(path).size);
  }

  async sendShard(files: readonly string[], note: string | null, kept: readonly string[] = []): Promise<void> {
    this.#throwFailure();
    const sending = this.#send(files, note, kept)
      .catch((error) => {
        this.#failures.push(error);
      })
      .finally(() => this.#sending.delete(sending));
    this.#sending.add(sending);
    while (this.#sending.size >= SENT_AT_ONCE) await Promise.race(this.#sending);
    this.#throwFailure();
  }

  async whenSent(): Promise<void> {
    await Promise.all(this.#sending);
    this.#throwFailure();
  }

  async commit(): Promise<void> {
    await this.sendNotes();
    const plan = await this.#storage.entry(PLAN);
    if (plan !== null && plan.version !== this.#planVersion) throw anotherPlan(this.location);
    const path = join(this.folder, MANIFEST_FILE);
    const before = this.#there.get(MANIFEST_FILE)?.entry;
    if (before === undefined) {
      await this.#putOnce(MANIFEST_FILE, path).catch((error) => {
        throw error instanceof FileExistsError ? anotherDataset(this.location) : error;
      });
    } else {
      for (const name of newIn(this.folder, VERSIONS_FOLDER, this.#there)) await this.sendFile(name);
      await replaceFile(this.#storage, MANIFEST_FILE, readFileSync(path), before.version, this.#stopped.signal).catch(
        (error) => {
          throw error instanceof FileChangedError ? changedMeanwhile(this.location) : error;
        },
      );
    }
    await this.removeGone();
  }

  async close(): Promise<void> {
    this.#stopped.abort(new Error('closed'));
    await Promise.allSettled(this.#sending);
    this.#staging.close();
  }

  /** A program that cleans up temporary files may remove some of the folder. They must not be removed from the bucket. */
  async #refuseLostFiles(gone: ReadonlySet<string>): Promise<void> {
    const isLost = !existsSync(this.folder) || (await this.#neededShards()).some((file) => gone.has(file));
    if (!isLost) return;
    const message = sentence`The staging folder ${this.folder} lost files, so nothing was removed from ${this.location}; make sure that no other program removes files there, or set ${option('staging')} to another folder, and run the same command again.`;
    throw new FileError({ path: this.location }, message);
  }

  /** Shards of the dataset, and of the version before it if that is kept. */
  async #neededShards(): Promise<string[]> {
    if (!existsSync(join(this.folder, MANIFEST_FILE))) return [];
    const { shards } = await readManifest(this.folder);
    const before = this.#before;
    const isKept = before !== null && existsSync(join(this.folder, versionFile(before.identity)));
    return [...shards, ...(isKept ? before.shards : [])].map(({ file }) => file);
  }

  #throwFailure(): void {
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  async #send(files: readonly string[], note: string | null, kept: readonly string[]): Promise<void> {
    const stored: [string, number, string][] = [];
    for (const name of files) {
      const path = join(this.folder, name);
      const { size } = statSync(path);
      if (this.#there.has(MANIFEST_FILE)) await this.#putNew(name, path);
      else await this.#storage.put(name, { file: path }, { signal: this.#stopped.signal });
      const { version } = await this.#sent(name, size);
      stored.push([name, size, version]);
      if (kept.includes(name)) continue;
      keepSize(path, size);
    }
    if (note === null) return;
    await addToNote(join(this.folder, note), { stored });
    const bytes = readFileSync(join(this.folder, note));
    await this.#storage.put(note, bytes, { signal: this.#stopped.signal });
    this.#there.set(note, { entry: { name: note, size: bytes.length, version: '' }, shadow: note });
  }

  /** Returns the entry of an uploaded file in the bucket; another size is an error. */
  async #sent(name: string, size: number): Promise<Entry> {
    const entry = await this.#storage.entry(name, this.#stopped.signal);
    if (entry?.size !== size) {
      const path = `${this.location}/${name}`;
      throw new FileError(
        { path },
        `${path} has ${entry?.size ?? 'no'} bytes, but ${size} bytes were written to it; make sure that nothing else writes there, and run the same command again.`,
      );
    }
    this.#there.set(name, { entry, shadow: name });
    return entry;
  }

  /**
   * Throws {@link FileExistsError} if a different object exists. An equal object may be left from a request whose
   * answer was lost.
   */
  async #putOnce(name: string, path: string): Promise<void> {
    const bytes = readFileSync(path);
    try {
      await this.#storage.put(name, bytes, { ifAbsent: true, signal: this.#stopped.signal });
    } catch (error) {
      if (!(error instanceof FileExistsError)) throw error;
      const found = await this.#read(name);
      if (!Buffer.from(found).equals(bytes)) throw error;
    }
    await this.#sent(name, bytes.length);
  }

  /**
   * Uploads a file of a new shard of a dataset that grows. A file of that name was left by a killed try, and then has the
   * same bytes, or is being written by another process.
   */
  async #putNew(name: string, path: string): Promise<void> {
    try {
      await this.#storage.put(name, { file: path }, { ifAbsent: true, signal: this.#stopped.signal });
    } catch (error) {
      if (!(error instanceof FileExistsError)) throw error;
      const entry = await this.#storage.entry(name, this.#stopped.signal);
      const isSame = entry?.size === statSync(path).size && (await this.#crc32At(entry)) === crc32OfFile(path);
      if (!isSame) throw changedMeanwhile(this.location);
    }
  }

  /** True if the folder shows its name and size only. */
  #isShown(name: string): boolean {
    return !isReadHere(name) && this.#there.get(name)?.isShown === true;
  }

  #read(name: string): Promise<Uint8Array> {
    return readWholeOf(this.#storage, name);
  }

  async #fetchFile(name: string): Promise<void> {
    const shadow = this.#there.get(name)?.shadow;
    if (shadow === undefined) return;
    try {
      await writeFile(join(this.folder, shadow), await this.#read(name));
      this.#there.set(name, { entry: this.#there.get(name)!.entry, shadow });
    } catch (error) {
      if (!(error instanceof FileNotFoundError)) throw error;
      // Another part has just committed and removed it.
      rmSync(join(this.folder, shadow), { force: true });
      this.#there.delete(name);
    }
  }

  /** True if the files that a note lists are in the bucket as they were stored. */
  async #isAsNoted(note: string, recheck: boolean): Promise<boolean> {
    const noted = readNoteText<ShardRecord & { stored?: [string, number, string][] }>(join(this.folder, note));
    if (noted?.stored === undefined) return false;
    const isSame = noted.stored.every(([name, size, version]) => {
      const entry = this.#there.get(name)?.entry;
      return entry !== undefined && entry.size === size && entry.version === version;
    });
    if (!isSame || !recheck) return isSame;
    return (await this.#crc32Of(noted.file)) === noted.crc32;
  }

  #crc32Of(name: string): Promise<number> {
    return this.#crc32At(this.#there.get(name)!.entry);
  }

  async #crc32At({ name, size }: Entry): Promise<number> {
    const source = await this.#storage.open(name, { size });
    const piece = new Uint8Array(Math.min(PIECE_BYTES, size));
    let sum = 0;
    for (let done = 0; done < size; ) {
      const read = await source.readAt(done, piece, this.#stopped.signal);
      sum = crc32(piece.subarray(0, read), sum);
      done += read;
    }
    await source.close();
    return sum;
  }
}

function tooMany(path: string): OutputNotEmptyError {
  const message = `${path} holds more than ${MOST_OBJECTS} objects; give the dataset a prefix of its own.`;
  return new OutputNotEmptyError({ path }, message);
}

/** Names of the files in a subfolder that the bucket does not have yet, sorted. */
function newIn(folder: string, below: string, there: ReadonlyMap<string, unknown>): string[] {
  if (!existsSync(join(folder, below))) return [];
  const names = readdirSync(join(folder, below), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  return names.filter((name) => !there.has(name)).sort();
}

export function changedMeanwhile(path: string): DatasetChangedError {
  const message = `${path} was changed by another process in the meantime, and this change was not made; run the same command again.`;
  return new DatasetChangedError({ path }, message);
}

function anotherPlan(path: string): PlanChangedError {
  const message = sentence`Another pack replaced ${path} while this one was running. Make sure that only one pack writes there, and start again with ${option('restart')}.`;
  return new PlanChangedError({ path }, message);
}

function anotherDataset(path: string): OutputNotEmptyError {
  const message = sentence`Another process wrote a dataset to ${path} in the meantime; write to another prefix, or replace that dataset with ${option('overwrite')}.`;
  return new OutputNotEmptyError({ path }, message);
}
