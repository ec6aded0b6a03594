import { statSync } from 'node:fs';
import { type FileTable, pathAt } from './file-table.js';

/** So many files at a time: few enough that all threads end together. */
const SLICE = 1024;

/** What threads share that measure the same table: at 0 where the next slice begins, at 1 how many files are done. */
export type MeasureTurn = Int32Array;

export function createMeasureTurn(): MeasureTurn {
  return new Int32Array(new SharedArrayBuffer(8));
}

/** Whether every file has its size. */
export function isMeasured(files: FileTable, turn: MeasureTurn): boolean {
  return Atomics.load(turn, 1) >= files.count;
}

/**
 * Fills in the sizes and times of files below `root` (with a "/" at its end), slice by slice, until none is left that another
 * thread has not taken. Yields how many files the slice had.
 */
export function* measureSlices(root: string, files: FileTable, turn: MeasureTurn): Generator<number> {
  for (;;) {
    const from = Atomics.add(turn, 0, SLICE);
    if (from >= files.count) return;
    const to = Math.min(files.count, from + SLICE);
    for (let file = from; file < to; file++) measure(root + pathAt(files, file), files, file);
    Atomics.add(turn, 1, to - from);
    yield to - from;
  }
}

/** A file that is not there, or no regular one, gets the size -1: packing it will say why. */
function measure(path: string, files: FileTable, file: number): void {
  files.bytes[file] = -1;
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat?.isFile()) return;
    files.bytes[file] = stat.size;
    files.mtimeMs[file] = stat.mtimeMs;
  } catch {
    // The size stays -1.
  }
}
