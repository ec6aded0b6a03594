import { statSync } from 'node:fs';
import type { FileFacts, SourceFiles } from './source-files.js';

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

/** A file that is not there, or no regular one, gets the size -1: packing it will say why. */
function measure(path: string): FileFacts {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isFile()) return { bytes: stat.size, mtimeMs: stat.mtimeMs };
  } catch {
    // The size stays -1.
  }
  return { bytes: -1, mtimeMs: 0 };
}
