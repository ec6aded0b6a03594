// Rotation with bicubic interpolation as in Pillow's Image.transform: pixels beyond an edge are those at the edge, and positions outside
// the source become the fill.

import { highBytes, lowBytes } from '../lanes';

@inline function pixelAt(at: usize): v128 {
  const word = v128.load32_zero(at);
  return f32x4.convert_i32x4_u(i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(word)));
}

@inline function clamp(value: i32, size: i32): usize {
  return <usize>max(0, min(value, size - 1));
}

@inline function packed(values: v128): u32 {
  const whole = i32x4.trunc_sat_f32x4_s(values);
  const words = i16x8.narrow_i32x4_s(whole, whole);
  return i32x4.extract_lane(i8x16.narrow_i16x8_u(words, words), 0);
}

/** Interpolates between b and c at fraction x with Pillow's BICUBIC macro: the cubic convolution with a = -1. */
@inline function cubicSum(a: v128, b: v128, c: v128, d: v128, x: v128): v128 {
  const p1 = b;
  const p2 = f32x4.sub(c, a);
  const p3 = f32x4.sub(f32x4.add(f32x4.mul(f32x4.sub(a, b), f32x4.splat(2)), c), d);
  const p4 = f32x4.add(f32x4.sub(b, a), f32x4.sub(d, c));
  return f32x4.add(p1, f32x4.mul(x, f32x4.add(p2, f32x4.mul(x, f32x4.add(p3, f32x4.mul(x, p4))))));
}

/** Interpolates in one row of the source, between the pixels at columns x1 and x2. Columns are in bytes. */
@inline function rowSum(row: usize, x0: usize, x1: usize, x2: usize, x3: usize, across: v128): v128 {
  return cubicSum(pixelAt(row + x0), pixelAt(row + x1), pixelAt(row + x2), pixelAt(row + x3), across);
}

/** Bits of the weights of rows: sums of four products with bytes fit 32 bits. */
const ROW_BITS: i32 = 13;

/** The weights of four pixels at fraction x, in the order of {@link cubicSum}. */
@inline function weightsOf(x: f32): v128 {
  const x2 = x * x;
  const x3 = x2 * x;
  return f32x4(-x + 2 * x2 - x3, 1 - 2 * x2 + x3, x + x2 - x3, x3 - x2);
}

/** Sums of the values of four rows by the weights of the rows, as floats. Each argument has a value of both rows in turn. */
@inline function rowSums(upper: v128, lower: v128, outer: v128, inner: v128): v128 {
  return f32x4.convert_i32x4_s(i32x4.add(i32x4.dot_i16x8_s(upper, outer), i32x4.dot_i16x8_s(lower, inner)));
}

/** The weights of the four rows at fraction y, in units of 2^-13: four words of 16 bits. */
@inline function rowWords(y: f32): v128 {
  const scaled = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(weightsOf(y), f32x4.splat(<f32>(1 << ROW_BITS)))));
  // The second weight takes the rounding errors of the others, so that an area of one value keeps it.
  const others = i32x4.extract_lane(scaled, 0) + i32x4.extract_lane(scaled, 2) + i32x4.extract_lane(scaled, 3);
  const exact = i32x4.replace_lane(scaled, 1, (1 << ROW_BITS) - others);
  return i16x8.narrow_i32x4_s(exact, exact);
}

/** The weights of the four columns at fraction x, divided by the unit of those of the rows. */
@inline function columnWeights(x: f32): v128 {
  return f32x4.mul(weightsOf(x), f32x4.splat(1 / <f32>(1 << ROW_BITS)));
}

/** The pixel at a position whose 16 neighbors are all inside. `at` is the first of them. */
@inline function insideBicubic(at: usize, pitch: usize, columns: v128, words: v128): u32 {
  const outer = i32x4.splat(i32x4.extract_lane(words, 0));
  const inner = i32x4.splat(i32x4.extract_lane(words, 1));
  const a = v128.load(at);
  const b = v128.load(at + pitch);
  const c = v128.load(at + 2 * pitch);
  const d = v128.load(at + 3 * pitch);
  // The 12 values of the four pixels, red, green and blue in turn.
  const upper = lowBytes(a, b);
  const lower = lowBytes(c, d);
  const first = rowSums(i16x8.extend_low_i8x16_u(upper), i16x8.extend_low_i8x16_u(lower), outer, inner);
  const second = rowSums(i16x8.extend_high_i8x16_u(upper), i16x8.extend_high_i8x16_u(lower), outer, inner);
  const third = rowSums(
    i16x8.extend_low_i8x16_u(highBytes(a, b)), i16x8.extend_low_i8x16_u(highBytes(c, d)), outer, inner
  );
  const weighted0 = f32x4.mul(first, v128.shuffle<f32>(columns, columns, 0, 0, 0, 1));
  const weighted1 = f32x4.mul(second, v128.shuffle<f32>(columns, columns, 1, 1, 2, 2));
  const weighted2 = f32x4.mul(third, v128.shuffle<f32>(columns, columns, 2, 3, 3, 3));
  const left = f32x4.add(weighted0, v128.shuffle<f32>(weighted0, weighted1, 3, 4, 5, 5));
  const right = f32x4.add(
    v128.shuffle<f32>(weighted1, weighted2, 2, 3, 4, 4), v128.shuffle<f32>(weighted2, weighted2, 1, 2, 3, 3)
  );
  // Floats may be slightly less than the value of an even area, and are truncated.
  return packed(f32x4.add(f32x4.add(left, right), f32x4.splat(1.0 / 1024)));
}

/** The pixel near an edge at position (x, y) of the source. The center of its first pixel is (0.5, 0.5). */
function edgeBicubic(source: usize, width: i32, height: i32, x: f64, y: f64): u32 {
  const left = floor(x - 0.5);
  const top = floor(y - 0.5);
  const column = <i32>left;
  const line = <i32>top;
  const across = f32x4.splat(<f32>(x - 0.5 - left));
  const down = f32x4.splat(<f32>(y - 0.5 - top));
  const pitch = <usize>(width * 3);
  const x0 = clamp(column - 1, width) * 3;
  const x1 = clamp(column, width) * 3;
  const x2 = clamp(column + 1, width) * 3;
  const x3 = clamp(column + 2, width) * 3;
  return packed(cubicSum(
    rowSum(source + clamp(line - 1, height) * pitch, x0, x1, x2, x3, across),
    rowSum(source + clamp(line, height) * pitch, x0, x1, x2, x3, across),
    rowSum(source + clamp(line + 1, height) * pitch, x0, x1, x2, x3, across),
    rowSum(source + clamp(line + 2, height) * pitch, x0, x1, x2, x3, across),
    down
  ));
}

/** The parameters are those of `rotateNearest`. Writes one byte past the end. */
export function rotateBicubic(
  source: usize, width: i32, height: i32, target: usize, targetWidth: i32, targetHeight: i32,
  a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, fill: u32
): void {
  // Positions are relative to the corners of the pictures from here on.
  const centerX = <f64>targetWidth * 0.5;
  const centerY = <f64>targetHeight * 0.5;
  const cx = c - a * centerX - b * centerY + <f64>width * 0.5;
  const fy = f - d * centerX - e * centerY + <f64>height * 0.5;
  const pitch = <usize>(width * 3);
  // Where an image is moved or sheared, most fractions are those of the pixel before.
  let across: f32 = 0;
  let down: f32 = 0;
  let columns = columnWeights(0);
  let words = rowWords(0);
  for (let row = 0; row < targetHeight; row++) {
    const toY = <f64>row + 0.5;
    for (let column = 0; column < targetWidth; column++, target += 3) {
      const toX = <f64>column + 0.5;
      const x = a * toX + b * toY + cx;
      const y = d * toX + e * toY + fy;
      // Stores 4 bytes. The last one belongs to the next pixel, which is written later.
      if (!(x >= 0 && y >= 0 && x < <f64>width && y < <f64>height)) {
        store<u32>(target, fill);
        continue;
      }
      const left = floor(x - 0.5);
      const top = floor(y - 0.5);
      const first = <i32>left - 1;
      const upper = <i32>top - 1;
      // The last 4 bytes that are read beyond the four pixels may be of the next row, or of the slack after the picture.
      if (first < 0 || upper < 0 || first >= width - 3 || upper >= height - 3) {
        store<u32>(target, edgeBicubic(source, width, height, x, y));
        continue;
      }
      const partX = <f32>(x - 0.5 - left);
      const partY = <f32>(y - 0.5 - top);
      if (partX != across) {
        across = partX;
        columns = columnWeights(across);
      }
      if (partY != down) {
        down = partY;
        words = rowWords(down);
      }
      store<u32>(target, insideBicubic(source + <usize>upper * pitch + <usize>first * 3, pitch, columns, words));
    }
  }
}
