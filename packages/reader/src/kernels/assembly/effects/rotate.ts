// Rotation (torchvision.transforms.v2.functional `rotate_image` on uint8): each pixel of the result is taken from a position
// in the source. Positions have 32 integer and 32 fraction bits, so that thousands of steps add no error.
const ONE: f64 = 4294967296;
/** Bits of the bilinear weights in each direction: 8 + 2 * 11 bits fit a sum. */
const WEIGHT_BITS: i32 = 11;
const WEIGHTS: i32 = 1 << WEIGHT_BITS;

@inline function position(a: f64, x: f64, b: f64, y: f64, c: f64): i64 {
  return <i64>floor((a * x + b * y + c) * ONE);
}

/**
 * Rotates to the nearest pixel. `a` to `f` map (x, y), relative to the center of the result, to a position relative to the center of
 * the source. `fill` is a pixel with red in its lowest byte.
 */
export function rotateNearest(
  source: usize, width: i32, height: i32, target: usize, targetWidth: i32, targetHeight: i32,
  a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, fill: u32
): void {
  const left = <f64>(1 - targetWidth) * 0.5;
  const top = <f64>(1 - targetHeight) * 0.5;
  // Adds half a pixel, so that truncation rounds.
  const cx = c + <f64>width * 0.5;
  const fy = f + <f64>height * 0.5;
  const dx = <i64>(a * ONE);
  const dy = <i64>(d * ONE);
  for (let row = 0; row < targetHeight; row++) {
    let x = position(a, left, b, top + <f64>row, cx);
    let y = position(d, left, e, top + <f64>row, fy);
    for (const end = target + <usize>(targetWidth * 3); target < end; target += 3, x += dx, y += dy) {
      const column = <i32>(x >> 32);
      const line = <i32>(y >> 32);
      const isInside = <u32>column < <u32>width && <u32>line < <u32>height;
      // Stores 4 bytes. The last one belongs to the next pixel, which is written later.
      store<u32>(target, isInside ? load<u32>(source + <usize>((line * width + column) * 3)) : fill);
    }
  }
}

/** Loads two adjacent pixels as [red 0, red 1, green 0, green 1, blue 0, blue 1, -, -]. Reads 8 bytes. */
@inline function neighbours(at: usize): v128 {
  const bytes = v128.load64_zero(at);
  return i8x16.shuffle(bytes, bytes, 0, 8, 3, 8, 1, 8, 4, 8, 2, 8, 5, 8, 8, 8, 8, 8);
}

/** Rotates with bilinear interpolation. The parameters are those of {@link rotateNearest}. */
export function rotateBilinear(
  source: usize, width: i32, height: i32, target: usize, targetWidth: i32, targetHeight: i32,
  a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, fill: u32
): void {
  const left = <f64>(1 - targetWidth) * 0.5;
  const top = <f64>(1 - targetHeight) * 0.5;
  // Adds half a step of the weights, so that truncation rounds.
  const cx = c + <f64>(width - 1) * 0.5 + 0.5 / <f64>WEIGHTS;
  const fy = f + <f64>(height - 1) * 0.5 + 0.5 / <f64>WEIGHTS;
  const dx = <i64>(a * ONE);
  const dy = <i64>(d * ONE);
  const pitch = <usize>(width * 3);
  const half = i32x4.splat(1 << (2 * WEIGHT_BITS - 1));
  for (let row = 0; row < targetHeight; row++) {
    let x = position(a, left, b, top + <f64>row, cx);
    let y = position(d, left, e, top + <f64>row, fy);
    for (const end = target + <usize>(targetWidth * 3); target < end; target += 3, x += dx, y += dy) {
      const column = <i32>(x >> 32);
      const line = <i32>(y >> 32);
      const right = <i32>(x >> (32 - WEIGHT_BITS)) & (WEIGHTS - 1);
      const lower = <i32>(y >> (32 - WEIGHT_BITS)) & (WEIGHTS - 1);
      if (<u32>column < <u32>(width - 1) && <u32>line < <u32>(height - 1)) {
        const at = source + <usize>((line * width + column) * 3);
        const across = i32x4.splat((right << 16) | (WEIGHTS - right));
        const upperSums = i32x4.dot_i16x8_s(neighbours(at), across);
        const lowerSums = i32x4.dot_i16x8_s(neighbours(at + pitch), across);
        const sums = i32x4.add(
          i32x4.mul(upperSums, i32x4.splat(WEIGHTS - lower)), i32x4.mul(lowerSums, i32x4.splat(lower))
        );
        const rounded = i32x4.shr_u(i32x4.add(sums, half), 2 * WEIGHT_BITS);
        const words = i16x8.narrow_i32x4_s(rounded, rounded);
        store<i32>(target, i32x4.extract_lane(i8x16.narrow_i16x8_u(words, words), 0));
      } else if (column >= -1 && column < width && line >= -1 && line < height) {
        store<u32>(target, edgePixel(source, width, height, column, line, right, lower, fill));
      } else {
        store<u32>(target, fill);
      }
    }
  }
}

/**
 * Rotates with bilinear interpolation as in Pillow's Image.transform: pixels beyond an edge are those at the edge, positions outside
 * the source become the fill, and results are truncated. The parameters are those of {@link rotateNearest}.
 */
export function rotatePillowBilinear(
  source: usize, width: i32, height: i32, target: usize, targetWidth: i32, targetHeight: i32,
  a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, fill: u32
): void {
  const left = <f64>(1 - targetWidth) * 0.5;
  const top = <f64>(1 - targetHeight) * 0.5;
  // Positions are those of pixel centers: column -1 with a fraction of at least 1/2 is still inside.
  const cx = c + <f64>(width - 1) * 0.5 + 0.5 / <f64>WEIGHTS;
  const fy = f + <f64>(height - 1) * 0.5 + 0.5 / <f64>WEIGHTS;
  const dx = <i64>(a * ONE);
  const dy = <i64>(d * ONE);
  const pitch = <usize>(width * 3);
  const half = <i64>(ONE / 2) - <i64>(ONE * 0.5 / <f64>WEIGHTS);
  const lastX = (<i64>width << 32) - 1;
  const lastY = (<i64>height << 32) - 1;
  for (let row = 0; row < targetHeight; row++) {
    let x = position(a, left, b, top + <f64>row, cx);
    let y = position(d, left, e, top + <f64>row, fy);
    for (const end = target + <usize>(targetWidth * 3); target < end; target += 3, x += dx, y += dy) {
      const insideX = x + half;
      const insideY = y + half;
      if (insideX < 0 || insideY < 0 || insideX > lastX || insideY > lastY) {
        store<u32>(target, fill);
        continue;
      }
      const column = <i32>(x >> 32);
      const line = <i32>(y >> 32);
      const right = <i32>(x >> (32 - WEIGHT_BITS)) & (WEIGHTS - 1);
      const lower = <i32>(y >> (32 - WEIGHT_BITS)) & (WEIGHTS - 1);
      const upperRow = source + <usize>max(line, 0) * pitch;
      const lowerRow = source + <usize>min(line + 1, height - 1) * pitch;
      const across = i32x4.splat((right << 16) | (WEIGHTS - right));
      let upper: v128;
      let under: v128;
      if (<u32>column < <u32>(width - 1)) {
        upper = neighbours(upperRow + <usize>(column * 3));
        under = neighbours(lowerRow + <usize>(column * 3));
      } else {
        // The pixel at the edge is both neighbors.
        const at = <usize>(max(column, 0) * 3);
        upper = twice(upperRow + at);
        under = twice(lowerRow + at);
      }
      const sums = i32x4.add(
        i32x4.mul(i32x4.dot_i16x8_s(upper, across), i32x4.splat(WEIGHTS - lower)),
        i32x4.mul(i32x4.dot_i16x8_s(under, across), i32x4.splat(lower))
      );
      const whole = i32x4.shr_u(sums, 2 * WEIGHT_BITS);
      const words = i16x8.narrow_i32x4_s(whole, whole);
      store<i32>(target, i32x4.extract_lane(i8x16.narrow_i16x8_u(words, words), 0));
    }
  }
}

/**
 * Takes each of `pixels` pixels from its position, two floats x and y, where whole numbers are the centers of pixels (torchvision's
 * `_apply_grid_transform` on uint8).
 */
export function mapPixels(
  source: usize, width: i32, height: i32, target: usize, pixels: usize, positions: usize, isNearest: bool, fill: u32
): void {
  const pitch = <usize>(width * 3);
  const half = i32x4.splat(1 << (2 * WEIGHT_BITS - 1));
  for (const end = target + pixels * 3; target < end; target += 3, positions += 8) {
    const x = load<f32>(positions);
    const y = load<f32>(positions, 4);
    // Also false if a position is not a number.
    if (!(x > -1 && y > -1 && x < <f32>width && y < <f32>height)) {
      store<u32>(target, fill);
      continue;
    }
    if (isNearest) {
      const column = <i32>nearest(x);
      const line = <i32>nearest(y);
      const isInside = <u32>column < <u32>width && <u32>line < <u32>height;
      store<u32>(target, isInside ? load<u32>(source + <usize>((line * width + column) * 3)) : fill);
      continue;
    }
    const column = <i32>floor(x);
    const line = <i32>floor(y);
    const right = <i32>nearest((x - floor(x)) * <f32>WEIGHTS);
    const lower = <i32>nearest((y - floor(y)) * <f32>WEIGHTS);
    if (<u32>column < <u32>(width - 1) && <u32>line < <u32>(height - 1)) {
      const at = source + <usize>((line * width + column) * 3);
      const across = i32x4.splat((right << 16) | (WEIGHTS - right));
      const sums = i32x4.add(
        i32x4.mul(i32x4.dot_i16x8_s(neighbours(at), across), i32x4.splat(WEIGHTS - lower)),
        i32x4.mul(i32x4.dot_i16x8_s(neighbours(at + pitch), across), i32x4.splat(lower))
      );
      const rounded = i32x4.shr_u(i32x4.add(sums, half), 2 * WEIGHT_BITS);
      const words = i16x8.narrow_i32x4_s(rounded, rounded);
      store<i32>(target, i32x4.extract_lane(i8x16.narrow_i16x8_u(words, words), 0));
    } else {
      store<u32>(target, edgePixel(source, width, height, column, line, right, lower, fill));
    }
  }
}

/** Loads one pixel in the format of {@link neighbours}, as both pixels. Reads 4 bytes. */
@inline function twice(at: usize): v128 {
  const bytes = v128.load32_zero(at);
  return i8x16.shuffle(bytes, bytes, 0, 8, 0, 8, 1, 8, 1, 8, 2, 8, 2, 8, 8, 8, 8, 8);
}

/**
 * A pixel for which some of the four source pixels are outside. torchvision uses black for these, and then blends the result with `fill`
 * by the share of the image. So there is a darker line between the image and the fill. A `fill` above 0xffffff means no fill.
 */
function edgePixel(
  source: usize, width: i32, height: i32, column: i32, line: i32, right: i32, lower: i32, fill: u32
): u32 {
  let share = 0;
  let red = 0;
  let green = 0;
  let blue = 0;
  for (let corner = 0; corner < 4; corner++) {
    const x = column + (corner & 1);
    const y = line + (corner >> 1);
    if (<u32>x >= <u32>width || <u32>y >= <u32>height) continue;
    const weight = (corner & 1 ? right : WEIGHTS - right) * (corner >> 1 ? lower : WEIGHTS - lower);
    const at = source + <usize>((y * width + x) * 3);
    share += weight;
    red += weight * <i32>load<u8>(at);
    green += weight * <i32>load<u8>(at, 1);
    blue += weight * <i32>load<u8>(at, 2);
  }
  // Without a fill, the black that torchvision uses stays.
  const part: f32 = fill > 0xffffff ? 1 : <f32>share / <f32>(WEIGHTS * WEIGHTS);
  return blend(red, part, fill & 255) | (blend(green, part, (fill >> 8) & 255) << 8) | (blend(blue, part, (fill >> 16) & 255) << 16);
}

@inline function blend(sum: i32, part: f32, fill: u32): u32 {
  const value = (<f32>sum / <f32>(WEIGHTS * WEIGHTS) - <f32>fill) * part + <f32>fill;
  return <u32>nearest(value);
}
