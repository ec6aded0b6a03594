import { closeSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { FileError, openErrorOf, readFully, readFullySync, reasonOf } from '@shardtool/base';
import type { Source } from '../../source.js';
import { partAt } from '../bytes/part-at.js';

/** How many files of one read are open at once. */
const FILES_AT_ONCE = 16;
/**
 * A read that took longer did not come from the page cache. Then many files are opened concurrently, by asynchronous
 * calls.
 */
const SLOW_MS = 0.4;
/** After this many asynchronous reads, one synchronous read is tried again. */
const TRY_AGAIN = 256;

/** Files in sequence, presented as one file. */
export class FilesSource implements Source {
  readonly location: string;
  readonly size: number;
  readonly #paths: readonly string[];
  readonly #starts: Float64Array;
  /** How many files are still read asynchronously before a synchronous read is tried again. */
  #slow = 0;

  /** `starts`: the offset of each file, and the end of the last one. */
  constructor(location: string, paths: readonly string[], starts: Float64Array) {
    this.location = location;
    this.size = starts.at(-1)!;
    this.#paths = paths;
    this.#starts = starts;
  }

  /** Throws {@link FileError} if a file is gone, or has another length than when it was listed. */
  async readAt(offset: number, target: Uint8Array): Promise<number> {
    const end = Math.min(offset + target.length, this.size);
    if (offset >= end) return 0;
    let next = partAt(this.#starts, offset);
    // Files in the page cache are read synchronously, which costs a tenth of an asynchronous read.
    while (this.#slow <= 0 && this.#starts[next]! < end) {
      const began = performance.now();
      this.#readNow(next++, offset, end, target);
      if (performance.now() - began > SLOW_MS) this.#slow = TRY_AGAIN;
    }
    const lane = async (): Promise<void> => {
      while (this.#starts[next]! < end) {
        this.#slow--;
        await this.#read(next++, offset, end, target);
      }
    };
    await Promise.all(Array.from({ length: FILES_AT_ONCE }, lane));
    return end - offset;
  }

  async close(): Promise<void> {}

  #readNow(file: number, offset: number, end: number, target: Uint8Array): void {
    const { path, from, bytes, at } = this.#part(file, offset, end);
    if (bytes === 0) return;
    let read = 0;
    try {
      const fd = openSync(path, 'r');
      try {
        read = readFullySync(fd, target.subarray(at, at + bytes), from);
      } finally {
        closeSync(fd);
      }
    } catch (cause) {
      throw unreadable(path, cause);
    }
    if (read < bytes) throw changed(path);
  }

  async #read(file: number, offset: number, end: number, target: Uint8Array): Promise<void> {
    const { path, from, bytes, at } = this.#part(file, offset, end);
    if (bytes === 0) return;
    const handle = await open(path).catch((cause) => {
      throw unreadable(path, cause);
    });
    try {
      if ((await readFully(handle, target.subarray(at, at + bytes), from)) < bytes) throw changed(path);
    } catch (cause) {
      throw cause instanceof FileError ? cause : unreadable(path, cause);
    } finally {
      await handle.close();
    }
  }

  /** The part of a file to read: its length, its offset `from`, and the offset `at` in the target. */
  #part(file: number, offset: number, end: number) {
    const [start, stop] = [this.#starts[file]!, this.#starts[file + 1]!];
    const from = Math.max(offset, start);
    return { path: this.#paths[file]!, from: from - start, bytes: Math.min(end, stop) - from, at: from - offset };
  }
}

function unreadable(path: string, cause: unknown): FileError {
  const Kind = openErrorOf(cause);
  return new Kind({ path }, `${path} cannot be read: ${reasonOf(cause)}.`, { cause });
}

function changed(path: string): FileError {
  return new FileError({ path }, `${path} has become shorter since the dataset was opened; open it again.`);
}
