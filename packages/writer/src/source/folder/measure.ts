import { statSync } from 'node:fs';
import { type FileAccess, factsOf } from '../ahead/file-access.js';
import type { InFlight } from '../ahead/in-flight.js';
import type { FileFacts, SourceFiles } from '../source-files.js';

/** So many files at a time: few enough that all threads end together. */
const SLICE = 1024;

/** What threads share that measure the same table: at 0 where the next slice begins, at 1 how many files are done. */
export type MeasureTurn = Int32Array;

export function createMeasureTurn(): MeasureTurn {
  return new Int32Array(new SharedArrayBuffer(8));
}

/** Whether every file has its size. */
export function isMeasured(files: SourceFiles, turn: MeasureTurn): boolean {
  return Atomics.load(turn, 1) >= files.count;
}

/**
 * Fills in the sizes and times of files below `root` (with a "/" at its end), slice by slice, until none is left that another
 * thread has not taken. Yields how many files the slice had.
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

/** File systems look names up one by one in one folder, and side by side in many: so many places in the list at once. */
const PLACES = 251;

/**
 * Fills in the sizes and times of all files below `root`, many at a time; `report` hears how many more are done, and
 * throws where the work is to end. Throws
 * `SourceTimeoutError`, and what `access` does.
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

/** The `turn`-th number of 0 to count - 1, where every file has many others between itself and the next. */
function strided(turn: number, count: number): number {
  const step = Math.max(1, Math.ceil(count / PLACES));
  const places = Math.ceil(count / step);
  // The places that have a file at the last offset come first in it.
  const full = count - (places - 1) * step;
  const inFull = full * places;
  if (turn < inFull) return Math.floor(turn / places) + (turn % places) * step;
  const rest = turn - inFull;
  return full + Math.floor(rest / (places - 1)) + (rest % (places - 1)) * step;
}

/** Does `work` for 0 to count - 1, as many at a time as may be in flight. The first failure begins no more, and is thrown. */
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
