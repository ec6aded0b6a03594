// Resize of 8-bit RGB with the filters of two tables, rows first, columns second, rounded to bytes between: the order and the rounding
// of Pillow's Image.resize and of torchvision's antialias=True.
//
// 8 source rows at a time are transposed to [byte][8 rows], resized along the row, and transposed back into the band. Then every
// output row whose last source row is in the band is computed and written to the target. There is no state between calls, and the
// caller provides all memory, so instances can share one memory.
import { copy } from '../copy';
import { resizeBlockInterleaved, resizeBlockPlanar } from './horizontal';
import { Table, startsOf, stepOf, weightsOf } from './table';
import { BLOCK_ROWS, turnBack, turnRows } from './transpose';
import {
  STEP, canPair, resizeRowToBytes, resizeRowToFloats, resizeRowsToBytes, resizeRowsToFloats
} from './vertical';

/** The parameters of a resize, in 32-bit words, as kernels/resize.ts writes them. Addresses are in bytes. */
@unmanaged
class Job {
  /** Address of the first source row in the order of the row table, at the first column that the column table uses. */
  source: usize;
  /** Number of bytes from one source row to the next. Negative (modulo 2^32) for a vertical flip. */
  stride: usize;
  /** Number of source rows that the tables use. */
  rows: i32;
  /** Number of bytes of each source row that the tables use. */
  rowBytes: usize;
  /** The column table. Its starts are in bytes of a block. */
  columnTable: Table;
  /** The row table. Its starts are in rows. */
  rowTable: Table;
  /** Address of the output, which has no gaps. */
  target: usize;
  /** Working memory: 8 transposed source rows, 8 transposed output rows, `bandRows` output rows, and one spare row for short ends. */
  block: usize;
  resized: usize;
  band: usize;
  bandRows: i32;
  spare: usize;
  /** Only for float32: address of three scales and three biases. */
  normalization: usize;
}

/** Resizes up to 8 source rows from row `y` on horizontally, and writes them to `target` in the band. */
@inline function resizeRows(job: Job, y: i32, target: usize, planar: bool): void {
  turnRows(job.source + <usize>y * job.stride, job.stride, job.rows - y, job.rowBytes, job.block);
  if (planar) resizeBlockPlanar(job.block, job.columnTable, job.resized);
  else resizeBlockInterleaved(job.block, job.columnTable, job.resized);
  turnBack(job.resized, target, pitchOf(job));
}

/** Number of bytes from one row of the band to the next. */
@inline function pitchOf(job: Job): usize {
  return <usize>job.columnTable.padded * 3;
}

/**
 * Writes `values` values of an output row, of all channels or of one, to `target`. Whole steps are written. They may spill into the
 * next rows, which are written later, but not past `end`.
 */
@inline function writeRow(
  job: Job, row: usize, weights: usize, values: usize, target: usize, end: usize, float: bool, channel: usize
): void {
  const steps = (values + STEP - 1) & ~(STEP - 1);
  const valueBytes: usize = float ? 4 : 1;
  const fits = end - target >= steps * valueBytes;
  const destination = fits ? target : job.spare;
  if (float) {
    const scale = job.normalization + channel * 4;
    resizeRowToFloats(row, pitchOf(job), steps, job.rowTable, weights, destination, scale, scale + 12);
  } else {
    resizeRowToBytes(row, pitchOf(job), steps, job.rowTable, weights, destination);
  }
  if (!fits) copy(target, destination, values * valueBytes);
}

/** Writes two output rows at once. `values` is a multiple of the step, so nothing spills. */
@inline function writeRows(
  job: Job, row: usize, weights: usize, together: bool, values: usize, target: usize, float: bool, channel: usize
): void {
  if (float) {
    const scale = job.normalization + channel * 4;
    resizeRowsToFloats(row, pitchOf(job), values, weights, together, target, values * 4, scale, scale + 12);
  } else {
    resizeRowsToBytes(row, pitchOf(job), values, weights, together, target, values);
  }
}

@inline function resize(job: Job, planar: bool, float: bool): void {
  const rowTable = job.rowTable;
  const pitch = pitchOf(job);
  const padded = <usize>job.columnTable.padded;
  const width = <usize>job.columnTable.count;
  const height = <usize>rowTable.count;
  const outputRowBytes = width * (float ? 4 : planar ? 1 : 3);
  const plane = outputRowBytes * height;
  const endOfStarts = startsOf(rowTable) + height * 4;
  let start = startsOf(rowTable);
  let weights = weightsOf(rowTable);
  let target = job.target;
  const end = target + plane;
  const pairs = canPair(rowTable) && width % STEP == 0;
  let bandStart = 0;

  for (let y = 0; y < job.rows; y += BLOCK_ROWS) {
    if (y + BLOCK_ROWS - bandStart > job.bandRows) {
      // If source rows are skipped, the next needed row may not be in the band yet.
      const needed = min(load<i32>(start), y);
      copy(job.band, job.band + <usize>(needed - bandStart) * pitch, <usize>(y - needed) * pitch);
      bandStart = needed;
    }
    resizeRows(job, y, job.band + <usize>(y - bandStart) * pitch, planar);

    const lastReady = y + BLOCK_ROWS < job.rows ? y + BLOCK_ROWS - rowTable.taps : i32.MAX_VALUE;
    for (; start < endOfStarts && load<i32>(start) <= lastReady; start += 4) {
      const row = job.band + <usize>(load<i32>(start) - bandStart) * pitch;
      if (pairs && start + 4 < endOfStarts && load<i32>(start, 4) <= lastReady && load<i32>(start, 4) - load<i32>(start) <= 1) {
        const together = load<i32>(start, 4) == load<i32>(start);
        if (planar) {
          writeRows(job, row, weights, together, width, target, float, 0);
          writeRows(job, row + padded, weights, together, width, target + plane, float, 1);
          writeRows(job, row + padded * 2, weights, together, width, target + plane * 2, float, 2);
        } else {
          writeRows(job, row, weights, together, width * 3, target, false, 0);
        }
        start += 4;
        weights += stepOf(rowTable) * 2;
        target += outputRowBytes * 2;
        continue;
      }
      if (planar) {
        writeRow(job, row, weights, width, target, end, float, 0);
        writeRow(job, row + padded, weights, width, target + plane, end + plane, float, 1);
        writeRow(job, row + padded * 2, weights, width, target + plane * 2, end + plane * 2, float, 2);
      } else {
        writeRow(job, row, weights, width * 3, target, end, false, 0);
      }
      weights += stepOf(rowTable);
      target += outputRowBytes;
    }
  }
}

/** Copies `rows` rows of `bytes` bytes. */
export function copyRows(target: usize, targetStride: usize, source: usize, sourceStride: usize, bytes: usize, rows: i32): void {
  for (; rows > 0; rows--, target += targetStride, source += sourceStride) copy(target, source, bytes);
}

/** Length of a pattern in bytes: a whole number of pixels and of vectors. */
const PATTERN: usize = 48;

/** Fills `bytes` bytes with pixels of this color. The first pixels are copied to those after them. */
export function fillPixels(target: usize, bytes: usize, red: i32, green: i32, blue: i32): void {
  for (let at: usize = 0; at < min(bytes, PATTERN); at += 3) {
    store<u8>(target + at, red);
    store<u8>(target + at, green, 1);
    store<u8>(target + at, blue, 2);
  }
  if (bytes > PATTERN) copy(target + PATTERN, target, bytes - PATTERN);
}

/** Resizes to uint8 [height, width, 3]. */
export function resizeInterleaved(job: Job): void {
  resize(job, false, false);
}

/** Resizes to uint8 [3, height, width]. */
export function resizePlanar(job: Job): void {
  resize(job, true, false);
}

/** Resizes to float32 [3, height, width]: the bytes of {@link resizePlanar} times a scale plus a bias per channel. */
export function resizeNormalized(job: Job): void {
  resize(job, true, true);
}
