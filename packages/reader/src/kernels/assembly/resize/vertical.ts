// The vertical pass: an output row is a weighted sum of consecutive rows from the horizontal pass. It is written directly to the
// target, as bytes or as floats.
import { highBytes, lowBytes } from '../lanes';
import { NARROW_BITS, Table } from './table';
import { addNarrow, addWide, fromWide, narrowHalf } from '../weigh';

/** Number of bytes of a row that one step reads, and number of values that it writes. */
export const STEP: usize = 16;

@inline function toFloat(values: v128, scale: v128, bias: v128): v128 {
  return f32x4.add(f32x4.mul(f32x4.convert_i32x4_s(values), scale), bias);
}

/** Writes 16 results to `target`: bytes, or floats times `scale` plus `bias`. */
@inline function emit(target: usize, low: v128, high: v128, float: bool, scale: v128, bias: v128): void {
  const a = i16x8.shr_u(low, 8);
  const b = i16x8.shr_u(high, 8);
  if (float) {
    v128.store(target, toFloat(i32x4.extend_low_i16x8_u(a), scale, bias));
    v128.store(target, toFloat(i32x4.extend_high_i16x8_u(a), scale, bias), 16);
    v128.store(target, toFloat(i32x4.extend_low_i16x8_u(b), scale, bias), 32);
    v128.store(target, toFloat(i32x4.extend_high_i16x8_u(b), scale, bias), 48);
  } else {
    v128.store(target, i8x16.narrow_i16x8_u(a, b));
  }
}

/** `taps` and `float` are constants after inlining. Two sums per step, because V8 would spill the registers of four. */
@inline function narrowRow(
  row: usize, pitch: usize, bytes: usize, weights: usize, taps: i32, target: usize, float: bool, scale: v128, bias: v128
): void {
  const half = narrowHalf();
  const w0 = v128.load32_splat(weights);
  const w1 = taps > 1 ? v128.load32_splat(weights, 4) : half;
  const w2 = taps > 2 ? v128.load32_splat(weights, 8) : half;
  const w3 = taps > 3 ? v128.load32_splat(weights, 12) : half;
  const w4 = taps > 4 ? v128.load32_splat(weights, 16) : half;
  const pitch2 = pitch * 2;
  const pitch3 = pitch * 3;
  const pitch4 = pitch * 4;
  for (const end = row + bytes; row < end; row += STEP) {
    let low = addNarrow(half, v128.load8x8_u(row), w0);
    let high = addNarrow(half, v128.load8x8_u(row, 8), w0);
    if (taps > 1) {
      const at = row + pitch;
      low = addNarrow(low, v128.load8x8_u(at), w1);
      high = addNarrow(high, v128.load8x8_u(at, 8), w1);
    }
    if (taps > 2) {
      const at = row + pitch2;
      low = addNarrow(low, v128.load8x8_u(at), w2);
      high = addNarrow(high, v128.load8x8_u(at, 8), w2);
    }
    if (taps > 3) {
      const at = row + pitch3;
      low = addNarrow(low, v128.load8x8_u(at), w3);
      high = addNarrow(high, v128.load8x8_u(at, 8), w3);
    }
    if (taps > 4) {
      const at = row + pitch4;
      low = addNarrow(low, v128.load8x8_u(at), w4);
      high = addNarrow(high, v128.load8x8_u(at, 8), w4);
    }
    emit(target, low, high, float, scale, bias);
    target += float ? STEP * 4 : STEP;
  }
}

/**
 * Makes two output rows at once, both with 2 taps. The first uses `row` and the row after it. The second uses the same rows if
 * `together` is true; otherwise it starts one row lower. Bytes that both need are loaded and widened once.
 */
@inline function narrowRows(
  row: usize, pitch: usize, bytes: usize, weights: usize, together: bool, target: usize, next: usize,
  float: bool, scale: v128, bias: v128
): void {
  const half = narrowHalf();
  const w0 = v128.load32_splat(weights);
  const w1 = v128.load32_splat(weights, 4);
  const x0 = v128.load32_splat(weights, 8);
  const x1 = v128.load32_splat(weights, 12);
  const pitch2 = pitch * 2;
  for (const end = row + bytes; row < end; row += STEP) {
    const a = v128.load8x8_u(row);
    const b = v128.load8x8_u(row, 8);
    const c = v128.load8x8_u(row + pitch);
    const d = v128.load8x8_u(row + pitch, 8);
    const low = addNarrow(addNarrow(half, a, w0), c, w1);
    emit(target, low, addNarrow(addNarrow(half, b, w0), d, w1), float, scale, bias);
    if (together) {
      const lower = addNarrow(addNarrow(half, a, x0), c, x1);
      emit(target + next, lower, addNarrow(addNarrow(half, b, x0), d, x1), float, scale, bias);
    } else {
      const lower = addNarrow(addNarrow(half, c, x0), v128.load8x8_u(row + pitch2), x1);
      const higher = addNarrow(addNarrow(half, d, x0), v128.load8x8_u(row + pitch2, 8), x1);
      emit(target + next, lower, higher, float, scale, bias);
    }
    target += float ? STEP * 4 : STEP;
  }
}

@inline function wideRow(
  row: usize, pitch: usize, bytes: usize, weights: usize, taps: i32, bits: i32, target: usize,
  float: bool, scale: v128, bias: v128
): void {
  const half = i32x4.splat(1 << (bits - 1));
  const shift = bits - NARROW_BITS;
  const endOfWeights = weights + <usize>(taps << 1);
  for (const end = row + bytes; row < end; row += STEP) {
    let s0 = half, s1 = half, s2 = half, s3 = half;
    for (let at = row, w = weights; w < endOfWeights; w += 4) {
      const pair = v128.load32_splat(w);
      const a = v128.load(at);
      at += pitch;
      const b = v128.load(at);
      at += pitch;
      const low = lowBytes(a, b);
      const high = highBytes(a, b);
      s0 = addWide(s0, i16x8.extend_low_i8x16_u(low), pair);
      s1 = addWide(s1, i16x8.extend_high_i8x16_u(low), pair);
      s2 = addWide(s2, i16x8.extend_low_i8x16_u(high), pair);
      s3 = addWide(s3, i16x8.extend_high_i8x16_u(high), pair);
    }
    emit(target, fromWide(s0, s1, shift), fromWide(s2, s3, shift), float, scale, bias);
    target += float ? STEP * 4 : STEP;
  }
}

@inline function resizeRow(
  row: usize, pitch: usize, bytes: usize, table: Table, weights: usize, target: usize, float: bool, scale: v128, bias: v128
): void {
  let taps = table.taps;
  if (table.bits > NARROW_BITS) {
    wideRow(row, pitch, bytes, weights, taps, table.bits, target, float, scale, bias);
    return;
  }
  // Many rows have one tap less than the maximum.
  if (taps > 1 && load<i32>(weights + <usize>(taps << 2) - 4) == 0) taps--;
  switch (taps) {
    case 1: narrowRow(row, pitch, bytes, weights, 1, target, float, scale, bias); break;
    case 2: narrowRow(row, pitch, bytes, weights, 2, target, float, scale, bias); break;
    case 3: narrowRow(row, pitch, bytes, weights, 3, target, float, scale, bias); break;
    case 4: narrowRow(row, pitch, bytes, weights, 4, target, float, scale, bias); break;
    default: narrowRow(row, pitch, bytes, weights, 5, target, float, scale, bias);
  }
}

/**
 * Makes one output row of bytes from the rows at `row`, `pitch` bytes apart, with the `weights` of one pixel of the table. Uses the
 * first `bytes` bytes, a multiple of STEP.
 */
export function resizeRowToBytes(
  row: usize, pitch: usize, bytes: usize, table: Table, weights: usize, target: usize
): void {
  const unused = i64x2.splat(0);
  resizeRow(row, pitch, bytes, table, weights, target, false, unused, unused);
}

/** Like {@link resizeRowToBytes}, but writes float32: the rounded byte times the float at `scale` plus the float at `bias`. */
export function resizeRowToFloats(
  row: usize, pitch: usize, bytes: usize, table: Table, weights: usize, target: usize, scale: usize, bias: usize
): void {
  const scales = v128.load32_splat(scale);
  const biases = v128.load32_splat(bias);
  resizeRow(row, pitch, bytes, table, weights, target, true, scales, biases);
}

/** Whether two output rows can be made at once: all pixels have 2 taps. */
@inline export function canPair(table: Table): bool {
  return table.bits == NARROW_BITS && table.taps == 2;
}

/**
 * Makes two output rows of bytes like {@link resizeRowToBytes}, if {@link canPair}. The second row is written `next` bytes after the
 * first. Its first tap is the row of the first output row (`together`) or the row after it.
 */
export function resizeRowsToBytes(
  row: usize, pitch: usize, bytes: usize, weights: usize, together: bool, target: usize, next: usize
): void {
  const unused = i64x2.splat(0);
  if (together) narrowRows(row, pitch, bytes, weights, true, target, next, false, unused, unused);
  else narrowRows(row, pitch, bytes, weights, false, target, next, false, unused, unused);
}

/** Like {@link resizeRowsToBytes}, but writes float32. */
export function resizeRowsToFloats(
  row: usize, pitch: usize, bytes: usize, weights: usize, together: bool, target: usize, next: usize, scale: usize, bias: usize
): void {
  const scales = v128.load32_splat(scale);
  const biases = v128.load32_splat(bias);
  if (together) narrowRows(row, pitch, bytes, weights, true, target, next, true, scales, biases);
  else narrowRows(row, pitch, bytes, weights, false, target, next, true, scales, biases);
}
