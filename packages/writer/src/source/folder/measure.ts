import { statSync } from 'node:fs';
import { type FileAccess, factsOf } from '../ahead/file-access.js';
import type { InFlight } from '../ahead/in-flight.js';
import type { FileFacts, SourceFiles } from '../source-files.js';

/** Files per slice: few enough that all threads finish at about the same time. */
const SLICE = 1024;

/**
 * State shared by threads that measure the same table. Index 0: start of the next slice; index 1: number of files done.
 */
export type MeasureTurn = Int32Array;

export function createMeasureTurn(): MeasureTurn {
  return new Int32Array(new SharedArrayBuffer(8));
}

/** True if every file has its size. */
export function isMeasured(files: SourceFiles, turn: MeasureTurn): boolean {
  return Atomics.load(turn, 1) >= files.count;
}

/**
 * Fills in the sizes and times of files below `root` (which ends with "/"), slice by slice, until no slice is left for
 * this thread. Yields the number of files in each slice.
 */
export function* measureSlices(root: string, files: SourceFiles, turn: MeasureTurn): Generator<number> {
  for (;;) {
    const from = Atomics.add(turn, 0, SLICE);
    if (from >= files.count) return;
    const to = Math.min(files.count, from + SLICE);
    files.fill(from, to, (path) => measure(root + path));
    Atomics.add(turn, 1, to - from);
    yield to - from;
  }
}

function measure(path: string): FileFacts {
  try {
    return factsOf(statSync(path, { throwIfNoEntry: false }));
  } catch {
    return factsOf(undefined);
  }
}

/**
 * File systems look up names of one folder one at a time, but different folders in parallel. Files are therefore taken
 * from this many positions of the list in turn.
 */
const PLACES = 251;

/**
 * Fills in the sizes and times of all files below `root` concurrently. `report` receives the number of files done since
 * its last call, and throws if the work should stop. Throws `SourceTimeoutError`, and the errors of `access`.
 */
export async function measureAhead(
  root: string,
  files: SourceFiles,
  flight: InFlight,
  access: FileAccess,
  report: (files: number) => void,
): Promise<void> {
  const { count } = files;
  const bytes = new Float64Array(count);
  const mtimeMs = new Float64Array(count);
  const reader = files.reader();
  await eachAhead(count, flight, async (turn) => {
    const file = strided(turn, count);
    const path = root + reader.path(file);
    const facts = await flight.run<FileFacts>(path, (done) => access.measure(path, done));
    bytes[file] = facts.bytes;
    mtimeMs[file] = facts.mtimeMs;
    report(1);
  });
  for (let from = 0; from < count; from += SLICE) {
    const to = Math.min(count, from + SLICE);
    files.fill(from, to, (_, file) => ({ bytes: bytes[file]!, mtimeMs: mtimeMs[file]! }));
  }
}

/** Returns the `turn`-th number of a permutation of 0 to count - 1, in which neighbouring files are far apart. */
function strided(turn: number, count: number): number {
  const step = Math.max(1, Math.ceil(count / PLACES));
  const places = Math.ceil(count / step);
  // The positions that have a file at the last offset are first.
  const full = count - (places - 1) * step;
  const inFull = full * places;
  if (turn < inFull) return Math.floor(turn / places) + (turn % places) * step;
  const rest = turn - inFull;
  return full + Math.floor(rest / (places - 1)) + (rest % (places - 1)) * step;
}

/**
 * Runs `work` for 0 to count - 1 with the allowed concurrency. After the first failure no more are started, and it is
 * thrown.
 */
function eachAhead(count: number, flight: InFlight, work: (turn: number) => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    let next = 0;
    let left = count;
    const more = (): void => {
      while (next < count && flight.hasRoom) work(next++).then(done, fail);
      if (next === count) flight.starved();
      if (left === 0) resolve();
    };
    const done = (): void => {
      left--;
      more();
    };
    const fail = (error: unknown): void => {
      next = count;
      reject(error);
    };
    more();
  });
}
