// Resize of 16-bit integers and floats with any number of channels. Rows first, then columns. Sums are of 64 bits and in the order of the
// taps, rows are floats of 32 bits between the two directions, and integers are rounded once at the end: the arithmetic of torchvision,
// with more exact sums. Values without weight do not count, even if they are infinite.
import { copy } from '../copy';

/** Values of dtype uint16, int16 and float32. */
const UINT16: i32 = 0;
const INT16: i32 = 1;

/** Number of rows that are resized at the same time. */
const BLOCK_ROWS: i32 = 8;
/** Size of a value of all rows of a block in bytes. */
const BLOCK_BYTES: usize = 32;
/** Number of values that a step along columns makes. */
const STEP: usize = 8;

@inline function valueBytes(dtype: i32): usize {
  return dtype == UINT16 || dtype == INT16 ? 2 : 4;
}

/** Four values as floats of 32 bits. */
@inline function loadFour(at: usize, dtype: i32): v128 {
  if (dtype == UINT16) return f32x4.convert_i32x4_s(v128.load16x4_u(at));
  if (dtype == INT16) return f32x4.convert_i32x4_s(v128.load16x4_s(at));
  return v128.load(at);
}

/** Two floats of 32 bits as floats of 64 bits. */
@inline function loadTwo(at: usize): v128 {
  return f64x2.promote_low_f32x4(v128.load64_zero(at));
}

/** Stores a 4 x 4 transpose: four values of four rows, [value][row]. */
@inline function storeTurned(r0: v128, r1: v128, r2: v128, r3: v128, to: usize): void {
  const low01 = i32x4.shuffle(r0, r1, 0, 4, 1, 5);
  const low23 = i32x4.shuffle(r2, r3, 0, 4, 1, 5);
  const high01 = i32x4.shuffle(r0, r1, 2, 6, 3, 7);
  const high23 = i32x4.shuffle(r2, r3, 2, 6, 3, 7);
  v128.store(to, i64x2.shuffle(low01, low23, 0, 2));
  v128.store(to, i64x2.shuffle(low01, low23, 1, 3), BLOCK_BYTES);
  v128.store(to, i64x2.shuffle(high01, high23, 0, 2), 2 * BLOCK_BYTES);
  v128.store(to, i64x2.shuffle(high01, high23, 1, 3), 3 * BLOCK_BYTES);
}

/**
 * Converts 8 rows of `values` values, `stride` bytes apart, to [value][8 rows]. If fewer than 8 rows exist (`rows`), the last one is repeated.
 * Reads up to 3 values past the end of a row, and writes as many past the end of the block.
 */
@inline function turnRows(source: usize, stride: usize, rows: i32, values: usize, block: usize, dtype: i32): void {
  const s1 = stride * <usize>min(1, rows - 1);
  const s2 = stride * <usize>min(2, rows - 1);
  const s3 = stride * <usize>min(3, rows - 1);
  const s4 = stride * <usize>min(4, rows - 1);
  const s5 = stride * <usize>min(5, rows - 1);
  const s6 = stride * <usize>min(6, rows - 1);
  const s7 = stride * <usize>min(7, rows - 1);
  const step = 4 * valueBytes(dtype);
  for (let i: usize = 0; i < values; i += 4, source += step, block += 4 * BLOCK_BYTES) {
    storeTurned(
      loadFour(source, dtype), loadFour(source + s1, dtype), loadFour(source + s2, dtype), loadFour(source + s3, dtype), block
    );
    storeTurned(
      loadFour(source + s4, dtype), loadFour(source + s5, dtype), loadFour(source + s6, dtype), loadFour(source + s7, dtype), block + 16
    );
  }
}

/** Stores two floats of 64 bits as floats of 32 bits in two rows. */
@inline function storeTwo(sums: v128, to: usize, pitch: usize): void {
  const floats = f32x4.demote_f64x2_zero(sums);
  v128.store32_lane(to, floats, 0);
  v128.store32_lane(to + pitch, floats, 1);
}

/** Resizes a block along its rows: `columns` pixels from `to` on, in rows that are `pitch` bytes apart. */
@inline function resizeBlock(
  block: usize, channels: i32, columns: i32, starts: usize, weights: usize, weightBytes: usize, to: usize, pitch: usize
): void {
  const step = <usize>channels * BLOCK_BYTES;
  for (const last = starts + (<usize>columns << 2); starts < last; starts += 4, weights += weightBytes) {
    let first = block + <usize>load<i32>(starts) * step;
    const end = weights + weightBytes;
    for (let channel = 0; channel < channels; channel++, first += BLOCK_BYTES, to += 4) {
      let sum0 = f64x2.splat(0);
      let sum1 = sum0;
      let sum2 = sum0;
      let sum3 = sum0;
      let at = first;
      for (let tap = weights; tap < end; tap += 8, at += step) {
        if (load<f64>(tap) == 0) continue;
        const weight = v128.load64_splat(tap);
        sum0 = f64x2.add(sum0, f64x2.mul(loadTwo(at), weight));
        sum1 = f64x2.add(sum1, f64x2.mul(loadTwo(at + 8), weight));
        sum2 = f64x2.add(sum2, f64x2.mul(loadTwo(at + 16), weight));
        sum3 = f64x2.add(sum3, f64x2.mul(loadTwo(at + 24), weight));
      }
      storeTwo(sum0, to, pitch);
      storeTwo(sum1, to + 2 * pitch, pitch);
      storeTwo(sum2, to + 4 * pitch, pitch);
      storeTwo(sum3, to + 6 * pitch, pitch);
    }
  }
}

@inline function rowsOf(
  source: usize, stride: usize, rows: i32, values: usize, channels: i32, columns: i32, starts: usize, weights: usize, taps: i32,
  block: usize, target: usize, pitch: usize, dtype: i32
): void {
  const weightBytes = <usize>taps << 3;
  for (let row = 0; row < rows; row += BLOCK_ROWS, source += stride * BLOCK_ROWS, target += pitch * BLOCK_ROWS) {
    turnRows(source, stride, rows - row, values, block, dtype);
    if (channels == 1) resizeBlock(block, 1, columns, starts, weights, weightBytes, target, pitch);
    else resizeBlock(block, channels, columns, starts, weights, weightBytes, target, pitch);
  }
}

/**
 * Makes `rows` rows of `columns` pixels of float32 at `target`, `pitch` bytes apart, from rows of `values` values that are `stride` bytes
 * apart. The rows are rounded up to whole blocks. `starts` has the first source pixel of each pixel, and `weights` `taps` weights of 64 bits
 * each. `block` is the address of BLOCK_BYTES for each value and three more.
 */
export function alongRows(
  source: usize, stride: usize, rows: i32, values: usize, channels: i32, columns: i32, starts: usize, weights: usize, taps: i32,
  block: usize, target: usize, pitch: usize, dtype: i32
): void {
  if (dtype == UINT16) rowsOf(source, stride, rows, values, channels, columns, starts, weights, taps, block, target, pitch, UINT16);
  else if (dtype == INT16) rowsOf(source, stride, rows, values, channels, columns, starts, weights, taps, block, target, pitch, INT16);
  else rowsOf(source, stride, rows, values, channels, columns, starts, weights, taps, block, target, pitch, 2);
}

/** Rounds halves up, as Math.round does. */
@inline function rounded(values: v128): v128 {
  const floors = f64x2.floor(values);
  const isUp = f64x2.ge(f64x2.sub(values, floors), f64x2.splat(0.5));
  return i32x4.trunc_sat_f64x2_s_zero(f64x2.add(floors, v128.and(isUp, f64x2.splat(1))));
}

/** Stores eight sums as values, which are limited to the range of their dtype. */
@inline function storeEight(to: usize, sum0: v128, sum1: v128, sum2: v128, sum3: v128, dtype: i32): void {
  if (dtype == UINT16 || dtype == INT16) {
    const low = i64x2.shuffle(rounded(sum0), rounded(sum1), 0, 2);
    const high = i64x2.shuffle(rounded(sum2), rounded(sum3), 0, 2);
    v128.store(to, dtype == UINT16 ? i16x8.narrow_i32x4_u(low, high) : i16x8.narrow_i32x4_s(low, high));
    return;
  }
  v128.store(to, i64x2.shuffle(f32x4.demote_f64x2_zero(sum0), f32x4.demote_f64x2_zero(sum1), 0, 2));
  v128.store(to, i64x2.shuffle(f32x4.demote_f64x2_zero(sum2), f32x4.demote_f64x2_zero(sum3), 0, 2), 16);
}

/** Makes eight values at `to` from the columns at `at`. */
@inline function sumRows(at: usize, pitch: usize, weights: usize, end: usize, to: usize, dtype: i32): void {
  let sum0 = f64x2.splat(0);
  let sum1 = sum0;
  let sum2 = sum0;
  let sum3 = sum0;
  for (; weights < end; weights += 8, at += pitch) {
    if (load<f64>(weights) == 0) continue;
    const weight = v128.load64_splat(weights);
    sum0 = f64x2.add(sum0, f64x2.mul(loadTwo(at), weight));
    sum1 = f64x2.add(sum1, f64x2.mul(loadTwo(at + 8), weight));
    sum2 = f64x2.add(sum2, f64x2.mul(loadTwo(at + 16), weight));
    sum3 = f64x2.add(sum3, f64x2.mul(loadTwo(at + 24), weight));
  }
  storeEight(to, sum0, sum1, sum2, sum3, dtype);
}

@inline function columnsOf(
  source: usize, pitch: usize, rows: i32, values: usize, starts: usize, weights: usize, taps: i32, target: usize, stride: usize,
  spare: usize, dtype: i32
): void {
  const weightBytes = <usize>taps << 3;
  const bytes = valueBytes(dtype);
  const whole = values & ~(STEP - 1);
  for (const last = starts + (<usize>rows << 2); starts < last; starts += 4, weights += weightBytes, target += stride) {
    const row = source + <usize>load<i32>(starts) * pitch;
    const end = weights + weightBytes;
    for (let x: usize = 0; x < whole; x += STEP) sumRows(row + x * 4, pitch, weights, end, target + x * bytes, dtype);
    if (whole < values) {
      sumRows(row + whole * 4, pitch, weights, end, spare, dtype);
      copy(target + whole * bytes, spare, (values - whole) * bytes);
    }
  }
}

/**
 * Makes `rows` rows of `values` values at `target`, `stride` bytes apart, from rows of float32 that are `pitch` bytes apart, a multiple of 32.
 * Exactly these values are written, and 32 bytes at `spare`.
 */
export function alongColumns(
  source: usize, pitch: usize, rows: i32, values: usize, starts: usize, weights: usize, taps: i32, target: usize, stride: usize,
  spare: usize, dtype: i32
): void {
  if (dtype == UINT16) columnsOf(source, pitch, rows, values, starts, weights, taps, target, stride, spare, UINT16);
  else if (dtype == INT16) columnsOf(source, pitch, rows, values, starts, weights, taps, target, stride, spare, INT16);
  else columnsOf(source, pitch, rows, values, starts, weights, taps, target, stride, spare, 2);
}
