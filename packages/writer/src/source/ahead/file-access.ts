import { type Stats, stat } from 'node:fs';
import type { FileFacts } from '../source-files.js';
import type { InFlight } from './in-flight.js';

/** What a file has to be when it is read. */
export interface ExpectedFile {
  /** Size in bytes. */
  readonly bytes: number;
  /** Null where its time does not matter. */
  readonly mtimeMs: number | null;
}

export type Done<Value> = (error: Error | null, value?: Value) => void;

/** How one file of a source is asked for, where many are asked for at a time. Paths are whole: the source's root is in front. */
export interface FileAccess {
  /** Reading a file tells when it was changed, without another call. */
  readonly tellsTimes: boolean;
  /** Size and time; size -1 for what is not there, or no file. */
  measure(path: string, done: Done<FileFacts>): void;
  /**
   * Reads all of a file to the beginning of `into`, which has room for at least one byte more. Its fault is a `BadFile`; any
   * other error ends the pack.
   */
  read(path: string, expected: ExpectedFile, into: Buffer, flight: InFlight, done: Done<undefined>): void;
  /** The same of a large file, piece by piece, each valid until the next. */
  pieces(path: string, expected: ExpectedFile, flight: InFlight): AsyncIterable<Uint8Array>;
}

/** Of one piece of a file. */
export const PIECE_BYTES = 4 << 20;

/** A file that is not there, or no regular one, gets the size -1: packing it will say why. */
export function factsOf(stats: Stats | undefined): FileFacts {
  return stats?.isFile() ? { bytes: stats.size, mtimeMs: stats.mtimeMs } : { bytes: -1, mtimeMs: 0 };
}

/** By the pool's threads. */
export function measureFile(path: string, done: Done<FileFacts>): void {
  stat(path, (error, stats) => done(null, factsOf(error === null ? stats : undefined)));
}
