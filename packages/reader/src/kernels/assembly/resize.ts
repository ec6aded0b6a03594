// Antialiased resize of 8-bit RGB: a triangle filter as wide as the reduction, rows first, columns second, rounded to bytes
// between: the order and the rounding of Pillow's Image.resize(..., BILINEAR) and of torchvision's antialias=True.
//
// 8 source rows at a time: turned to [byte][8 rows], resized along the row, turned back into the band. Then every output
// row whose last source row is in the band is made and written to its place. No state is left between two calls; all
// memory is the caller's, so that many instances share one.
import { copy } from './copy';
import { resizeBlockInterleaved, resizeBlockPlanar } from './horizontal';
import { Table, startsOf, stepOf, weightsOf } from './table';
import { BLOCK_ROWS, turnBack, turnRows } from './transpose';
import { STEP, resizeRowToBytes, resizeRowToFloats } from './vertical';

/** What is to be done and where, as resize.ts beside this folder writes it: 32-bit words. Addresses are bytes. */
@unmanaged
class Job {
  /** The first source row in the order of the row table, from the first column that the column table reaches. */
  source: usize;
  /** Bytes from one source row to the next. Negative (modulo 2^32) where the picture is to be turned upside down. */
  stride: usize;
  /** Source rows, and bytes of each, that the tables reach. */
  rows: i32;
  rowBytes: usize;
  /** Starts of the column table are in bytes of a block, of the row table in rows. */
  columnTable: Table;
  rowTable: Table;
  /** The output, without gaps. */
  target: usize;
  /** Working memory: 8 source rows turned, 8 output rows turned, `bandRows` output rows, one more for short ends. */
  block: usize;
  resized: usize;
  band: usize;
  bandRows: i32;
  spare: usize;
  /** float32 only: three scales and three biases. */
  normalization: usize;
}

/** `values` bytes of an output row to `target`. Whole steps spill into the rows after it, which come later, but not past `end`. */
@inline function writeBytes(job: Job, row: usize, pitch: usize, values: usize, weights: usize, target: usize, end: usize): void {
  const table = job.rowTable;
  const bytes = wholeSteps(values);
  if (end - target >= bytes) {
    resizeRowToBytes(row, pitch, bytes, weights, table.taps, table.bits, target);
  } else {
    resizeRowToBytes(row, pitch, bytes, weights, table.taps, table.bits, job.spare);
    copy(target, job.spare, values);
  }
}

/** The same for one row of floats of channel `channel`. */
@inline function writeFloats(
  job: Job, row: usize, pitch: usize, values: usize, weights: usize, target: usize, end: usize, channel: usize
): void {
  const table = job.rowTable;
  const bytes = wholeSteps(values);
  const scale = job.normalization + channel * 4;
  const bias = scale + 12;
  if (end - target >= bytes * 4) {
    resizeRowToFloats(row, pitch, bytes, weights, table.taps, table.bits, target, scale, bias);
  } else {
    resizeRowToFloats(row, pitch, bytes, weights, table.taps, table.bits, job.spare, scale, bias);
    copy(target, job.spare, values * 4);
  }
}

@inline function wholeSteps(values: usize): usize {
  return (values + STEP - 1) & ~(STEP - 1);
}

@inline function resize(job: Job, planar: bool, float: bool): void {
  const columnTable = job.columnTable;
  const rowTable = job.rowTable;
  const rows = job.rows;
  const band = job.band;
  const width = <usize>columnTable.count;
  const padded = <usize>columnTable.padded;
  const pitch = padded * 3;
  const plane = width * <usize>rowTable.count << (float ? 2 : 0);
  const weightStep = stepOf(rowTable);
  const lastStart = startsOf(rowTable) + (<usize>rowTable.count << 2);
  let start = startsOf(rowTable);
  let weights = weightsOf(rowTable);
  let target = job.target;
  const end = target + plane;
  let bandStart = 0;

  for (let y = 0; y < rows; y += BLOCK_ROWS) {
    if (y + BLOCK_ROWS - bandStart > job.bandRows) {
      const needed = load<i32>(start);
      copy(band, band + <usize>(needed - bandStart) * pitch, <usize>(y - needed) * pitch);
      bandStart = needed;
    }
    turnRows(job.source + <usize>y * job.stride, job.stride, rows - y, job.rowBytes, job.block);
    if (planar) resizeBlockPlanar(job.block, columnTable, job.resized);
    else resizeBlockInterleaved(job.block, columnTable, job.resized);
    turnBack(job.resized, band + <usize>(y - bandStart) * pitch, pitch);

    const lastReady = y + BLOCK_ROWS < rows ? y + BLOCK_ROWS - rowTable.taps : i32.MAX_VALUE;
    for (; start < lastStart && load<i32>(start) <= lastReady; start += 4, weights += weightStep) {
      const row = band + <usize>(load<i32>(start) - bandStart) * pitch;
      if (float) {
        writeFloats(job, row, pitch, width, weights, target, end, 0);
        writeFloats(job, row + padded, pitch, width, weights, target + plane, end + plane, 1);
        writeFloats(job, row + padded * 2, pitch, width, weights, target + plane * 2, end + plane * 2, 2);
        target += width << 2;
      } else if (planar) {
        writeBytes(job, row, pitch, width, weights, target, end);
        writeBytes(job, row + padded, pitch, width, weights, target + plane, end + plane);
        writeBytes(job, row + padded * 2, pitch, width, weights, target + plane * 2, end + plane * 2);
        target += width;
      } else {
        writeBytes(job, row, pitch, width * 3, weights, target, end + plane * 2);
        target += width * 3;
      }
    }
  }
}

/** uint8, height x width x 3. */
export function resizeInterleaved(job: Job): void {
  resize(job, false, false);
}

/** uint8, 3 x height x width. */
export function resizePlanar(job: Job): void {
  resize(job, true, false);
}

/** float32, 3 x height x width: the bytes of {@link resizePlanar} times a scale plus a bias per channel. */
export function resizeNormalized(job: Job): void {
  resize(job, true, true);
}
