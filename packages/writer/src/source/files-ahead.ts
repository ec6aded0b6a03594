import { type BigIntStats, close, fstat, open, read, type Stats } from 'node:fs';
import type { FileTable } from './file-table.js';
import { pathAt } from './file-table.js';
import type { InFlight } from './in-flight.js';
import { BadFile, changedFile, isSystemLimit, READ_NOW, unreadableFile } from './source-file.js';

/** All files that are read or wait for their turn take no more memory than this, unless one alone does. */
const MEMORY_BYTES = 64 << 20;
const MAX_READ_BYTES = 1 << 30;
/** After so long another file may have been closed. */
const OPEN_AGAIN_MS = 5;

/** A file that was read, or why it could not be. */
type Outcome = Buffer | Error;

/**
 * Reads the files of a table many at a time and gives them in their order. A file has to have the size that it had when it
 * was measured, and with `checkTimes` the time.
 */
export class FilesAhead {
  readonly #root: string;
  readonly #files: FileTable;
  readonly #flight: InFlight;
  readonly #checkTimes: boolean;
  readonly #outcomes = new Map<number, Outcome>();
  #next = 0;
  #held = 0;
  #isClosed = false;
  /** Who waits for a file, and which. */
  #waiting: { readonly file: number; readonly resume: () => void } | null = null;

  constructor(root: string, files: FileTable, flight: InFlight, checkTimes: boolean) {
    this.#root = root;
    this.#files = files;
    this.#flight = flight;
    this.#checkTimes = checkTimes;
  }

  /** Waits until the files `from` to `to - 1` are there, and returns what puts each into its place, or throws its error. */
  async take(from: number, to: number): Promise<((place: Uint8Array) => void)[]> {
    const puts: ((place: Uint8Array) => void)[] = [];
    for (let file = from; file < to; file++) {
      this.#begin(file);
      if (!this.#outcomes.has(file)) {
        await new Promise<void>((resume) => {
          this.#waiting = { file, resume };
        });
      }
      const outcome = this.#outcomes.get(file)!;
      this.#outcomes.delete(file);
      if (outcome instanceof Error && !(outcome instanceof BadFile)) throw outcome;
      puts.push((place) => {
        if (outcome instanceof Error) throw outcome;
        place.set(outcome);
      });
    }
    for (let file = from; file < to; file++) this.#held -= this.#sizeOf(file);
    return puts;
  }

  /** Begins no more. */
  close(): void {
    this.#isClosed = true;
  }

  #sizeOf(file: number): number {
    return Math.max(0, this.#files.bytes[file]!);
  }

  /** Begins as many files as may be in flight, and `wanted` in any case. */
  #begin(wanted = -1): void {
    while (!this.#isClosed && this.#next < this.#files.count) {
      const bytes = this.#sizeOf(this.#next);
      if (this.#next > wanted) {
        if (!this.#flight.hasRoom) return;
        if (this.#held + bytes > MEMORY_BYTES) break;
      }
      this.#held += bytes;
      void this.#read(this.#next++);
    }
    this.#flight.starved();
  }

  async #read(file: number): Promise<void> {
    const path = this.#root + pathAt(this.#files, file);
    const facts = { bytes: this.#sizeOf(file), mtimeMs: this.#checkTimes ? this.#files.mtimeMs[file]! : null };
    let outcome: Outcome;
    try {
      outcome = await this.#flight.run<Buffer>(path, (done) => readWhole(path, facts, this.#flight, done));
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

interface ExpectedFile {
  readonly bytes: number;
  /** Null where its time does not matter. */
  readonly mtimeMs: number | null;
}

type Done = (error: Error | null, content?: Buffer) => void;

/** Opens, reads and closes a file. Its fault is a {@link BadFile}, as it is where files are read one after the other. */
function readWhole(path: string, expected: ExpectedFile, flight: InFlight, done: Done): void {
  open(path, READ_NOW, (error, fd) => {
    if (error !== null) {
      if (!isSystemLimit(error) || flight.live <= 1) return done(unreadableFile(path, error));
      flight.tooMany();
      setTimeout(() => readWhole(path, expected, flight, done), OPEN_AGAIN_MS);
      return;
    }
    const end: Done = (failure, content) => {
      // Nobody waits for its answer.
      close(fd, () => undefined);
      done(failure, content);
    };
    if (expected.mtimeMs === null) return readOpen(path, fd, expected.bytes, end);
    fstat(fd, (failure: Error | null, stat: Stats | BigIntStats) => {
      if (failure !== null) end(unreadableFile(path, failure));
      else if (stat.mtimeMs !== expected.mtimeMs) end(changedFile(path));
      else readOpen(path, fd, expected.bytes, end);
    });
  });
}

/** One byte more is asked for: whether the file has grown shows in the same read. */
function readOpen(path: string, fd: number, bytes: number, end: Done): void {
  const content = Buffer.allocUnsafeSlow(bytes + 1);
  const readOn = (at: number): void => {
    const asked = Math.min(content.length - at, MAX_READ_BYTES);
    read(fd, content, at, asked, null, (error, got) => {
      if (error !== null) return end(unreadableFile(path, error));
      const isAll = got === 0 || (got < asked && at + got === bytes);
      if (!isAll && at + got < content.length) return readOn(at + got);
      if (at + got === bytes) end(null, content.subarray(0, bytes));
      else end(changedFile(path));
    });
  };
  readOn(0);
}
