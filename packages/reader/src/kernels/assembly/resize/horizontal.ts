// The horizontal pass: a block [byte of the source row][8 rows] becomes [pair of bytes of the output row][8 rows][2].
// Each weight is used for 8 rows, and a tap is 8 adjacent bytes.
import { highWords, lowWords } from '../lanes';
import { NARROW_BITS, Table, startsOf, stepOf, weightsOf } from './table';
import { addNarrow, addWide, fromWide, narrowHalf } from '../weigh';

/** Size of a pixel of a block in bytes: 3 channels of 8 rows. */
const PIXEL: usize = 24;

/** Interleaves two results of 8 rows each: [8 rows][a, b]. */
@inline function pairUp(a: v128, b: v128): v128 {
  return v128.or(i16x8.shr_u(a, 8), v128.and(b, i16x8.splat(-256)));
}

@inline function narrow(at: usize, taps: i32, w0: v128, w1: v128, w2: v128, w3: v128, w4: v128): v128 {
  let sums = addNarrow(narrowHalf(), v128.load8x8_u(at), w0);
  if (taps > 1) sums = addNarrow(sums, v128.load8x8_u(at, PIXEL), w1);
  if (taps > 2) sums = addNarrow(sums, v128.load8x8_u(at, 2 * PIXEL), w2);
  if (taps > 3) sums = addNarrow(sums, v128.load8x8_u(at, 3 * PIXEL), w3);
  if (taps > 4) sums = addNarrow(sums, v128.load8x8_u(at, 4 * PIXEL), w4);
  return sums;
}

/** Makes two output pixels per iteration: 6 results of 8 rows. `taps` and `planar` are constants after inlining. */
@inline function narrowBlock(block: usize, table: Table, out: usize, taps: i32, planar: bool): void {
  const unused = i64x2.splat(0);
  const plane = <usize>table.padded << 3;
  const end = weightsOf(table);
  let weights = end;
  for (let start = startsOf(table); start < end; start += 8) {
    const p = block + <usize>load<i32>(start);
    const q = block + <usize>load<i32>(start, 4);
    const p0 = v128.load32_splat(weights);
    const p1 = taps > 1 ? v128.load32_splat(weights, 4) : unused;
    const p2 = taps > 2 ? v128.load32_splat(weights, 8) : unused;
    const p3 = taps > 3 ? v128.load32_splat(weights, 12) : unused;
    const p4 = taps > 4 ? v128.load32_splat(weights, 16) : unused;
    // This store comes before the weights of the second pixel are loaded, so that V8 keeps them in registers.
    if (!planar) v128.store(out, pairUp(narrow(p, taps, p0, p1, p2, p3, p4), narrow(p + 8, taps, p0, p1, p2, p3, p4)));
    const following = weights + <usize>taps * 4;
    const q0 = v128.load32_splat(following);
    const q1 = taps > 1 ? v128.load32_splat(following, 4) : unused;
    const q2 = taps > 2 ? v128.load32_splat(following, 8) : unused;
    const q3 = taps > 3 ? v128.load32_splat(following, 12) : unused;
    const q4 = taps > 4 ? v128.load32_splat(following, 16) : unused;
    weights = following + <usize>taps * 4;
    const blueP = narrow(p + 16, taps, p0, p1, p2, p3, p4);
    if (planar) {
      v128.store(out, pairUp(narrow(p, taps, p0, p1, p2, p3, p4), narrow(q, taps, q0, q1, q2, q3, q4)));
      v128.store(out + plane, pairUp(narrow(p + 8, taps, p0, p1, p2, p3, p4), narrow(q + 8, taps, q0, q1, q2, q3, q4)));
      v128.store(out + plane * 2, pairUp(blueP, narrow(q + 16, taps, q0, q1, q2, q3, q4)));
      out += 16;
    } else {
      v128.store(out, pairUp(blueP, narrow(q, taps, q0, q1, q2, q3, q4)), 16);
      v128.store(out, pairUp(narrow(q + 8, taps, q0, q1, q2, q3, q4), narrow(q + 16, taps, q0, q1, q2, q3, q4)), 32);
      out += 48;
    }
  }
}

@inline function wide(at: usize, weights: usize, end: usize, bits: i32): v128 {
  const half = i32x4.splat(1 << (bits - 1));
  let low = half;
  let high = half;
  for (; weights < end; weights += 4, at += 2 * PIXEL) {
    const pair = v128.load32_splat(weights);
    const a = v128.load8x8_u(at);
    const b = v128.load8x8_u(at, PIXEL);
    low = addWide(low, lowWords(a, b), pair);
    high = addWide(high, highWords(a, b), pair);
  }
  return fromWide(low, high, bits - NARROW_BITS);
}

@inline function wideBlock(block: usize, table: Table, out: usize, planar: bool): void {
  const bits = table.bits;
  const step = stepOf(table);
  const plane = <usize>table.padded << 3;
  const end = weightsOf(table);
  let weights = end;
  for (let start = startsOf(table); start < end; start += 8) {
    const p = block + <usize>load<i32>(start);
    const q = block + <usize>load<i32>(start, 4);
    const wp = weights;
    const wq = wp + step;
    weights = wq + step;
    if (planar) {
      v128.store(out, pairUp(wide(p, wp, wq, bits), wide(q, wq, weights, bits)));
      v128.store(out + plane, pairUp(wide(p + 8, wp, wq, bits), wide(q + 8, wq, weights, bits)));
      v128.store(out + plane * 2, pairUp(wide(p + 16, wp, wq, bits), wide(q + 16, wq, weights, bits)));
      out += 16;
    } else {
      v128.store(out, pairUp(wide(p, wp, wq, bits), wide(p + 8, wp, wq, bits)));
      v128.store(out, pairUp(wide(p + 16, wp, wq, bits), wide(q, wq, weights, bits)), 16);
      v128.store(out, pairUp(wide(q + 8, wq, weights, bits), wide(q + 16, wq, weights, bits)), 32);
      out += 48;
    }
  }
}

@inline function resizeBlock(block: usize, table: Table, out: usize, planar: bool): void {
  if (table.bits > NARROW_BITS) {
    wideBlock(block, table, out, planar);
    return;
  }
  switch (table.taps) {
    case 1: narrowBlock(block, table, out, 1, planar); break;
    case 2: narrowBlock(block, table, out, 2, planar); break;
    case 3: narrowBlock(block, table, out, 3, planar); break;
    case 4: narrowBlock(block, table, out, 4, planar); break;
    default: narrowBlock(block, table, out, 5, planar);
  }
}

/** Resizes a block. Output rows are interleaved: red, green, blue, red, ... */
export function resizeBlockInterleaved(block: usize, table: Table, out: usize): void {
  resizeBlock(block, table, out, false);
}

/** Resizes a block. Output rows are planar: three rows of one channel each, `table.padded` bytes apart. */
export function resizeBlockPlanar(block: usize, table: Table, out: usize): void {
  resizeBlock(block, table, out, true);
}
