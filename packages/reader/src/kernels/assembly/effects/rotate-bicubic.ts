// Rotation with bicubic interpolation as in Pillow's Image.transform: pixels beyond an edge are those at the edge, and positions outside
// the source become the fill.

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

/** Four adjacent pixels of a row, as channels with 4 bytes a pixel. Reads 16 bytes. */
@inline function fourPixels(at: usize): v128 {
  const bytes = v128.load(at);
  return i8x16.shuffle(bytes, bytes, 0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
}

/** Sums of two pixels of two rows, by the weights of the rows: 16-bit pairs. */
@inline function pairOfRows(upper: v128, lower: v128, weights: v128): v128 {
  return i32x4.dot_i16x8_s(
    i16x8.extend_low_i8x16_u(i8x16.shuffle(upper, lower, 0, 16, 1, 17, 2, 18, 3, 19, 0, 0, 0, 0, 0, 0, 0, 0)),
    weights
  );
}

/** Sums of the four rows for pixel `pixel` of the four, in its channels, as floats. */
@inline function columnSum(a: v128, b: v128, c: v128, d: v128, outer: v128, inner: v128): v128 {
  return f32x4.convert_i32x4_s(i32x4.add(pairOfRows(a, b, outer), pairOfRows(c, d, inner)));
}

/** The pixel at a position whose 16 neighbors are all inside. `at` is the first of them. */
@inline function insideBicubic(at: usize, pitch: usize, x: f32, y: f32): u32 {
  const rows = weightsOf(y);
  const scaled = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(rows, f32x4.splat(<f32>(1 << ROW_BITS)))));
  // The second weight takes the rounding errors of the others, so that an area of one value keeps it.
  const others = i32x4.extract_lane(scaled, 0) + i32x4.extract_lane(scaled, 2) + i32x4.extract_lane(scaled, 3);
  const exact = i32x4.replace_lane(scaled, 1, (1 << ROW_BITS) - others);
  const words = i16x8.narrow_i32x4_s(exact, exact);
  const outer = i32x4.splat(i32x4.extract_lane(words, 0));
  const inner = i32x4.splat(i32x4.extract_lane(words, 1));
  const a = fourPixels(at);
  const b = fourPixels(at + pitch);
  const c = fourPixels(at + 2 * pitch);
  const d = fourPixels(at + 3 * pitch);
  const columns = f32x4.mul(weightsOf(x), f32x4.splat(1 / <f32>(1 << ROW_BITS)));
  const first = columnSum(a, b, c, d, outer, inner);
  const second = columnSum(
    i8x16.shuffle(a, a, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), i8x16.shuffle(b, b, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    i8x16.shuffle(c, c, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), i8x16.shuffle(d, d, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    outer, inner
  );
  const third = columnSum(
    i8x16.shuffle(a, a, 8, 9, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), i8x16.shuffle(b, b, 8, 9, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    i8x16.shuffle(c, c, 8, 9, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), i8x16.shuffle(d, d, 8, 9, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    outer, inner
  );
  const fourth = columnSum(
    i8x16.shuffle(a, a, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), i8x16.shuffle(b, b, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    i8x16.shuffle(c, c, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), i8x16.shuffle(d, d, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    outer, inner
  );
  const left = f32x4.add(
    f32x4.mul(first, f32x4.splat(f32x4.extract_lane(columns, 0))), f32x4.mul(second, f32x4.splat(f32x4.extract_lane(columns, 1)))
  );
  const right = f32x4.add(
    f32x4.mul(third, f32x4.splat(f32x4.extract_lane(columns, 2))), f32x4.mul(fourth, f32x4.splat(f32x4.extract_lane(columns, 3)))
  );
  // Floats may be slightly less than the value of an even area, and are truncated.
  return packed(f32x4.add(f32x4.add(left, right), f32x4.splat(1.0 / 1024)));
}

/** The pixel at position (x, y) of the source. The center of its first pixel is (0.5, 0.5). */
function bicubic(source: usize, width: i32, height: i32, x: f64, y: f64): u32 {
  const left = floor(x - 0.5);
  const top = floor(y - 0.5);
  const column = <i32>left;
  const line = <i32>top;
  const across = f32x4.splat(<f32>(x - 0.5 - left));
  const down = f32x4.splat(<f32>(y - 0.5 - top));
  const pitch = <usize>(width * 3);
  // The last 4 bytes that are read beyond the four pixels may be of the next row, or of the slack after the picture.
  if (column > 0 && line > 0 && column < width - 2 && line < height - 2) {
    const at = source + <usize>(line - 1) * pitch + <usize>(column - 1) * 3;
    return insideBicubic(at, pitch, <f32>(x - 0.5 - left), <f32>(y - 0.5 - top));
  }
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
  for (let row = 0; row < targetHeight; row++) {
    const toY = <f64>row + 0.5;
    for (let column = 0; column < targetWidth; column++, target += 3) {
      const toX = <f64>column + 0.5;
      const x = a * toX + b * toY + cx;
      const y = d * toX + e * toY + fy;
      const isInside = x >= 0 && y >= 0 && x < <f64>width && y < <f64>height;
      // Stores 4 bytes. The last one belongs to the next pixel, which is written later.
      store<u32>(target, isInside ? bicubic(source, width, height, x, y) : fill);
    }
  }
}
