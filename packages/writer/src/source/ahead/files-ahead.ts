import { crc32 } from '@shardtool/base';
import type { FileTable } from '../file-table.js';
import { pathAt } from '../file-table.js';
import { BadFile } from '../source-file.js';
import type { ExpectedFile, FileAccess } from './file-access.js';
import type { InFlight } from './in-flight.js';
import { ReadBuffers } from './read-buffers.js';

/** Memory limit for all files that are being read or wait for their turn, unless a single file is larger. */
const MEMORY_BYTES = 64 << 20;

/** A file that was read, in a buffer of at least its size, or the error of reading it. */
type Outcome = Buffer | Error;

/**
 * Contents of a file. If it was read: a function that copies it to its place and returns its crc32, or throws its
 * error. Otherwise a function that reads it in pieces.
 */
export interface FileAhead {
  readonly put?: (place: Uint8Array) => number;
  readonly pieces?: () => AsyncIterable<Uint8Array>;
}

/**
 * Reads the files of a table concurrently and returns them in order. A file must have the size that was measured, and
 * with `checkTimes` the same modification time. Files of more than `heldBytes` are read in pieces when their turn
 * comes.
 */
export class FilesAhead {
  readonly #root: string;
  readonly #files: FileTable;
  readonly #flight: InFlight;
  readonly #access: FileAccess;
  readonly #checkTimes: boolean;
  readonly #heldBytes: number;
  readonly #outcomes = new Map<number, Outcome>();
  readonly #buffers = new ReadBuffers();
  /** Files that were returned last. They are in use until the next are requested. */
  #given: Buffer[] = [];
  #next = 0;
  #held = 0;
  #isClosed = false;
  /** The file that is waited for, and the function that resumes the caller. */
  #waiting: { readonly file: number; readonly resume: () => void } | null = null;

  constructor(
    root: string,
    files: FileTable,
    flight: InFlight,
    access: FileAccess,
    checkTimes: boolean,
    heldBytes = Number.POSITIVE_INFINITY,
  ) {
    this.#root = root;
    this.#files = files;
    this.#flight = flight;
    this.#access = access;
    this.#checkTimes = checkTimes || access.tellsTimes;
    this.#heldBytes = heldBytes;
  }

  /**
   * Returns the contents of the files `from` to `to - 1`, valid until the next call. Returns immediately if the files
   * were already read.
   */
  take(from: number, to: number): FileAhead[] | Promise<FileAhead[]> {
    for (const buffer of this.#given) this.#buffers.giveBack(buffer);
    this.#given = [];
    for (let file = from; file < to; file++) {
      this.#begin(file);
      if (!this.#isLarge(file) && !this.#outcomes.has(file)) return this.#wait(from, to);
    }
    return this.#taken(from, to);
  }

  async #wait(from: number, to: number): Promise<FileAhead[]> {
    for (let file = from; file < to; file++) {
      this.#begin(file);
      if (this.#isLarge(file) || this.#outcomes.has(file)) continue;
      await new Promise<void>((resume) => {
        this.#waiting = { file, resume };
      });
    }
    return this.#taken(from, to);
  }

  #taken(from: number, to: number): FileAhead[] {
    const taken: FileAhead[] = [];
    for (let file = from; file < to; file++) {
      if (this.#isLarge(file)) {
        const path = this.#root + pathAt(this.#files, file);
        taken.push({ pieces: () => this.#access.pieces(path, this.#expected(file), this.#flight) });
        continue;
      }
      const outcome = this.#outcomes.get(file)!;
      this.#outcomes.delete(file);
      if (outcome instanceof Error && !(outcome instanceof BadFile)) throw outcome;
      if (outcome instanceof Error) {
        taken.push({ put: () => fail(outcome) });
        continue;
      }
      this.#given.push(outcome);
      const content = outcome.subarray(0, this.#sizeOf(file));
      taken.push({ put: (place) => copyTo(place, content) });
    }
    for (let file = from; file < to; file++) this.#held -= this.#sizeOf(file);
    return taken;
  }

  /** Starts no more reads. */
  close(): void {
    this.#isClosed = true;
  }

  #expected(file: number): ExpectedFile {
    const [bytes, mtimeMs] = [this.#files.bytes[file]!, this.#files.mtimeMs[file]!];
    return { bytes: Math.max(0, bytes), mtimeMs: this.#checkTimes ? mtimeMs : null };
  }

  /** Size of the file in memory. */
  #sizeOf(file: number): number {
    return this.#isLarge(file) ? 0 : Math.max(0, this.#files.bytes[file]!);
  }

  #isLarge(file: number): boolean {
    return this.#files.bytes[file]! > this.#heldBytes;
  }

  /** Starts as many reads as the limit allows, and `wanted` in any case. */
  #begin(wanted = -1): void {
    while (!this.#isClosed && this.#next < this.#files.count) {
      const bytes = this.#sizeOf(this.#next);
      if (this.#next > wanted) {
        if (!this.#flight.hasRoom) return;
        if (this.#held + bytes > MEMORY_BYTES) break;
      }
      this.#held += bytes;
      if (this.#isLarge(this.#next)) this.#next++;
      else void this.#read(this.#next++);
    }
    this.#flight.starved();
  }

  async #read(file: number): Promise<void> {
    const path = this.#root + pathAt(this.#files, file);
    const facts = this.#expected(file);
    let outcome: Outcome = this.#buffers.take(facts.bytes + 1);
    const into = outcome;
    try {
      await this.#flight.run(path, (done) => this.#access.read(path, facts, into, this.#flight, done));
    } catch (error) {
      outcome = error as Error;
    }
    this.#outcomes.set(file, outcome);
    if (this.#waiting?.file === file) {
      this.#waiting.resume();
      this.#waiting = null;
    }
    this.#begin();
  }
}

function copyTo(place: Uint8Array, content: Uint8Array): number {
  place.set(content);
  return crc32(content);
}

function fail(error: Error): never {
  throw error;
}
