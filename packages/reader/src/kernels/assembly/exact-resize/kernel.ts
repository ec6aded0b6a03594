// Resize of bytes with any number of channels and the 22-bit weights of Pillow, so that results are Pillow's, bit for bit
// (libImaging/Resample.c). Rows first, rounded to bytes, then columns.
//
// A weight w is kept as two words, w = high * 256 + low, because SIMD multiplies 16 bits far more quickly than 32: a sum of 22-bit
// weights is (sum of highs << 8) + sum of lows. kernels/exact-resize.ts writes the tables.
import { copy } from '../copy';
import { highBytes, highWords, lowBytes, lowWords } from '../lanes';
import { BLOCK_ROWS, turnBack, turnRows } from '../resize/transpose';

/** Bits of a weight. */
const BITS: i32 = 22;
/** Bits of the low word of a weight. */
const LOW_BITS: i32 = 8;
/** Number of values that a step along columns makes. */
const STEP: usize = 16;
/** Size of the weights of two taps in bytes: two high words, two low words. */
const PAIR_BYTES: usize = 8;

@inline function half(): v128 {
  return i32x4.splat(1 << (BITS - 1));
}

/** 8 sums as bytes in words of 16 bits, clipped like Pillow's clip8. */
@inline function toBytes(highA: v128, lowA: v128, highB: v128, lowB: v128): v128 {
  const a = i32x4.shr_s(i32x4.add(i32x4.shl(highA, LOW_BITS), lowA), BITS);
  const b = i32x4.shr_s(i32x4.add(i32x4.shl(highB, LOW_BITS), lowB), BITS);
  return i16x8.min_u(i16x8.narrow_i32x4_u(a, b), i16x8.splat(255));
}

/** The value of 8 rows whose first source byte is at `at` of a block. `step` is the size of a pixel of the block. */
@inline function sumOfBlock(at: usize, step: usize, weights: usize, end: usize): v128 {
  let highA = i32x4.splat(0);
  let highB = highA;
  let lowA = half();
  let lowB = lowA;
  for (; weights < end; weights += PAIR_BYTES, at += 2 * step) {
    const high = v128.load32_splat(weights);
    const low = v128.load32_splat(weights, 4);
    const first = v128.load8x8_u(at);
    const second = v128.load8x8_u(at + step);
    const a = lowWords(first, second);
    const b = highWords(first, second);
    highA = i32x4.add(highA, i32x4.dot_i16x8_s(a, high));
    lowA = i32x4.add(lowA, i32x4.dot_i16x8_s(a, low));
    highB = i32x4.add(highB, i32x4.dot_i16x8_s(b, high));
    lowB = i32x4.add(lowB, i32x4.dot_i16x8_s(b, low));
  }
  return toBytes(highA, lowA, highB, lowB);
}

/** Resizes a block along its rows. `channels` is a constant after inlining where it is 1. */
@inline function resizeBlock(
  block: usize, channels: i32, columns: i32, starts: usize, weights: usize, weightBytes: usize, resized: usize
): void {
  const step = <usize>channels * BLOCK_ROWS;
  let first = i32x4.splat(0);
  let isSecond = false;
  for (const end = starts + (<usize>columns << 2); starts < end; starts += 4, weights += weightBytes) {
    let at = block + <usize>load<i32>(starts) * step;
    for (let channel = 0; channel < channels; channel++, at += BLOCK_ROWS) {
      const sums = sumOfBlock(at, step, weights, weights + weightBytes);
      if (isSecond) {
        v128.store(resized, v128.or(first, i16x8.shl(sums, 8)));
        resized += 16;
      } else first = sums;
      isSecond = !isSecond;
    }
  }
  if (isSecond) v128.store(resized, first);
}

/**
 * Resizes `rows` rows of `bytes` bytes, `stride` apart, to rows of `columns` pixels, `pitch` (a multiple of 16) apart, of which a multiple
 * of 8 is written. The weights of a column are `pairs` pairs of taps.
 */
export function alongRows(
  source: usize, stride: usize, rows: i32, bytes: usize, channels: i32, columns: i32, starts: usize, weights: usize, pairs: i32,
  block: usize, resized: usize, target: usize, pitch: usize
): void {
  const weightBytes = <usize>pairs * PAIR_BYTES;
  for (let y = 0; y < rows; y += BLOCK_ROWS) {
    turnRows(source + <usize>y * stride, stride, rows - y, bytes, block);
    if (channels == 1) resizeBlock(block, 1, columns, starts, weights, weightBytes, resized);
    else resizeBlock(block, channels, columns, starts, weights, weightBytes, resized);
    turnBack(resized, target + <usize>y * pitch, pitch);
  }
}

/** 16 values of the output row whose first source row is at `row`. */
@inline function sumOfRows(row: usize, pitch: usize, weights: usize, end: usize): v128 {
  let high0 = i32x4.splat(0);
  let high1 = high0;
  let high2 = high0;
  let high3 = high0;
  let low0 = half();
  let low1 = low0;
  let low2 = low0;
  let low3 = low0;
  const none = i32x4.splat(0);
  for (; weights < end; weights += PAIR_BYTES, row += 2 * pitch) {
    const high = v128.load32_splat(weights);
    const low = v128.load32_splat(weights, 4);
    const upper = v128.load(row);
    const lower = v128.load(row + pitch);
    const left = lowBytes(upper, lower);
    const right = highBytes(upper, lower);
    let pairs = lowBytes(left, none);
    high0 = i32x4.add(high0, i32x4.dot_i16x8_s(pairs, high));
    low0 = i32x4.add(low0, i32x4.dot_i16x8_s(pairs, low));
    pairs = highBytes(left, none);
    high1 = i32x4.add(high1, i32x4.dot_i16x8_s(pairs, high));
    low1 = i32x4.add(low1, i32x4.dot_i16x8_s(pairs, low));
    pairs = lowBytes(right, none);
    high2 = i32x4.add(high2, i32x4.dot_i16x8_s(pairs, high));
    low2 = i32x4.add(low2, i32x4.dot_i16x8_s(pairs, low));
    pairs = highBytes(right, none);
    high3 = i32x4.add(high3, i32x4.dot_i16x8_s(pairs, high));
    low3 = i32x4.add(low3, i32x4.dot_i16x8_s(pairs, low));
  }
  return i8x16.narrow_i16x8_u(toBytes(high0, low0, high1, low1), toBytes(high2, low2, high3, low3));
}

/**
 * Makes `rows` rows of `bytes` bytes at `target`, `stride` apart, from rows that are `pitch` apart. Exactly these bytes are written, and 16
 * at `spare`.
 */
export function alongColumns(
  source: usize, pitch: usize, rows: i32, bytes: usize, starts: usize, weights: usize, pairs: i32, target: usize, stride: usize,
  spare: usize
): void {
  const weightBytes = <usize>pairs * PAIR_BYTES;
  const whole = bytes & ~(STEP - 1);
  for (const last = starts + (<usize>rows << 2); starts < last; starts += 4, weights += weightBytes, target += stride) {
    const row = source + <usize>load<i32>(starts) * pitch;
    const end = weights + weightBytes;
    for (let x: usize = 0; x < whole; x += STEP) v128.store(target + x, sumOfRows(row + x, pitch, weights, end));
    if (whole < bytes) {
      v128.store(spare, sumOfRows(row + whole, pitch, weights, end));
      copy(target + whole, spare, bytes - whole);
    }
  }
}
