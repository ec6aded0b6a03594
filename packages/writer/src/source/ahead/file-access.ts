import { type Stats, stat } from 'node:fs';
import type { FileFacts } from '../source-files.js';
import type { InFlight } from './in-flight.js';

/** Expected properties of a file when it is read. */
export interface ExpectedFile {
  /** Size in bytes. */
  readonly bytes: number;
  /** Modification time; null if it does not matter. */
  readonly mtimeMs: number | null;
}

export type Done<Value> = (error: Error | null, value?: Value) => void;

/** How files of a source are read when many are read concurrently. Paths include the root of the source. */
export interface FileAccess {
  /** True if reading a file also returns its modification time, without another call. */
  readonly tellsTimes: boolean;
  /** Returns size and time; size -1 for a missing file, or something other than a file. */
  measure(path: string, done: Done<FileFacts>): void;
  /**
   * Reads all of a file to the beginning of `into`, which has room for at least one byte more. A problem with the file
   * itself is a `BadFile`; any other error stops the pack.
   */
  read(path: string, expected: ExpectedFile, into: Buffer, flight: InFlight, done: Done<undefined>): void;
  /** Reads a large file in pieces, each valid until the next. */
  pieces(path: string, expected: ExpectedFile, flight: InFlight): AsyncIterable<Uint8Array>;
}

/** Size of one piece of a file. */
export const PIECE_BYTES = 4 << 20;

/** A missing file, or something other than a regular file, gets the size -1. Packing it then reports why. */
export function factsOf(stats: Stats | undefined): FileFacts {
  return stats?.isFile() ? { bytes: stats.size, mtimeMs: stats.mtimeMs } : { bytes: -1, mtimeMs: 0 };
}

/** Measures in threads of the libuv pool. */
export function measureFile(path: string, done: Done<FileFacts>): void {
  stat(path, (error, stats) => done(null, factsOf(error === null ? stats : undefined)));
}
