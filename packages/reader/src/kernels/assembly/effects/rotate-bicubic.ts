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

/** The pixel at position (x, y) of the source. The center of its first pixel is (0.5, 0.5). */
function bicubic(source: usize, width: i32, height: i32, x: f64, y: f64): u32 {
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
