// Affine and perspective maps. A pixel of the result is taken from a position in the source:
// x = (a X + b Y + c) / (g X + h Y + 1), y = (d X + e Y + f) / (g X + h Y + 1), where X and Y are the center of the pixel of the
// result, half a pixel from its corner, and so are x and y.

/** The nearest pixel, as in torchvision for tensors. */
const NEAREST: i32 = 0;
/** Bilinear as in torchvision for tensors: pixels outside are black, and the result is blended with the fill by the share of the image. */
const BILINEAR: i32 = 1;
/** Bilinear and bicubic as in Pillow: pixels beyond an edge are those at the edge, and positions outside become the fill. */
const PILLOW_BILINEAR: i32 = 2;

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

@inline function mixed(a: v128, b: v128, share: v128): v128 {
  return f32x4.add(a, f32x4.mul(f32x4.sub(b, a), share));
}

@inline function colour(fill: u32): v128 {
  return f32x4(<f32>(fill & 255), <f32>((fill >> 8) & 255), <f32>((fill >> 16) & 255), 0);
}

function pillowBilinear(source: usize, width: i32, height: i32, x: f64, y: f64): u32 {
  const column = floor(x - 0.5);
  const line = floor(y - 0.5);
  const across = f32x4.splat(<f32>(x - 0.5 - column));
  const down = f32x4.splat(<f32>(y - 0.5 - line));
  const left = clamp(<i32>column, width) * 3;
  const right = clamp(<i32>column + 1, width) * 3;
  const upper = source + clamp(<i32>line, height) * <usize>(width * 3);
  const lower = source + clamp(<i32>line + 1, height) * <usize>(width * 3);
  const above = mixed(pixelAt(upper + left), pixelAt(upper + right), across);
  const below = mixed(pixelAt(lower + left), pixelAt(lower + right), across);
  return packed(mixed(above, below, down));
}

/** Interpolates between b and c at fraction x with Pillow's BICUBIC macro: the cubic convolution with a = -1. */
@inline function cubicSum(a: v128, b: v128, c: v128, d: v128, x: v128): v128 {
  const p1 = b;
  const p2 = f32x4.sub(c, a);
  const p3 = f32x4.sub(f32x4.add(f32x4.mul(f32x4.sub(a, b), f32x4.splat(2)), c), d);
  const p4 = f32x4.add(f32x4.sub(b, a), f32x4.sub(d, c));
  return f32x4.add(p1, f32x4.mul(x, f32x4.add(p2, f32x4.mul(x, f32x4.add(p3, f32x4.mul(x, p4))))));
}

function pillowBicubic(source: usize, width: i32, height: i32, x: f64, y: f64): u32 {
  const column = floor(x - 0.5);
  const line = floor(y - 0.5);
  const across = f32x4.splat(<f32>(x - 0.5 - column));
  const down = f32x4.splat(<f32>(y - 0.5 - line));
  const pitch = <usize>(width * 3);
  const x0 = clamp(<i32>column - 1, width) * 3;
  const x1 = clamp(<i32>column, width) * 3;
  const x2 = clamp(<i32>column + 1, width) * 3;
  const x3 = clamp(<i32>column + 2, width) * 3;
  const r0 = source + clamp(<i32>line - 1, height) * pitch;
  const r1 = source + clamp(<i32>line, height) * pitch;
  const r2 = source + clamp(<i32>line + 1, height) * pitch;
  const r3 = source + clamp(<i32>line + 2, height) * pitch;
  const v0 = cubicSum(pixelAt(r0 + x0), pixelAt(r0 + x1), pixelAt(r0 + x2), pixelAt(r0 + x3), across);
  const v1 = cubicSum(pixelAt(r1 + x0), pixelAt(r1 + x1), pixelAt(r1 + x2), pixelAt(r1 + x3), across);
  const v2 = cubicSum(pixelAt(r2 + x0), pixelAt(r2 + x1), pixelAt(r2 + x2), pixelAt(r2 + x3), across);
  const v3 = cubicSum(pixelAt(r3 + x0), pixelAt(r3 + x1), pixelAt(r3 + x2), pixelAt(r3 + x3), across);
  return packed(cubicSum(v0, v1, v2, v3, down));
}

@inline function torchCorner(source: usize, width: i32, height: i32, column: i32, line: i32, weight: f32): v128 {
  if (<u32>column >= <u32>width || <u32>line >= <u32>height) return f32x4.splat(0);
  const pixel = f32x4.replace_lane(pixelAt(source + <usize>((line * width + column) * 3)), 3, 1);
  return f32x4.mul(pixel, f32x4.splat(weight));
}

function torchBilinear(source: usize, width: i32, height: i32, x: f64, y: f64, fill: u32): u32 {
  const left = floor(x - 0.5);
  const top = floor(y - 0.5);
  const right = <f32>(x - 0.5 - left);
  const lower = <f32>(y - 0.5 - top);
  const column = <i32>left;
  const line = <i32>top;
  const sums = f32x4.add(
    f32x4.add(
      torchCorner(source, width, height, column, line, (1 - right) * (1 - lower)),
      torchCorner(source, width, height, column + 1, line, right * (1 - lower))
    ),
    f32x4.add(
      torchCorner(source, width, height, column, line + 1, (1 - right) * lower),
      torchCorner(source, width, height, column + 1, line + 1, right * lower)
    )
  );
  if (fill > 0xffffff) return packed(f32x4.nearest(sums));
  const share = f32x4.splat(f32x4.extract_lane(sums, 3));
  const filled = colour(fill);
  return packed(f32x4.nearest(f32x4.add(f32x4.mul(f32x4.sub(sums, filled), share), filled)));
}

/** One pixel of a result, from position (x, y) of the source. `fill` has red in its lowest byte; a number above 0xffffff means no fill. */
@inline function sample(source: usize, width: i32, height: i32, x: f64, y: f64, mode: i32, fill: u32): u32 {
  if (mode == BILINEAR) {
    if (!(x > -0.5 && y > -0.5 && x < <f64>width + 0.5 && y < <f64>height + 0.5)) return fill & 0xffffff;
    return torchBilinear(source, width, height, x, y, fill);
  }
  if (mode == NEAREST) {
    const column = nearest(x - 0.5);
    const line = nearest(y - 0.5);
    if (!(column >= 0 && line >= 0 && column < <f64>width && line < <f64>height)) return fill & 0xffffff;
    return load<u32>(source + <usize>((<i32>line * width + <i32>column) * 3));
  }
  if (!(x >= 0 && y >= 0 && x < <f64>width && y < <f64>height)) return fill & 0xffffff;
  return mode == PILLOW_BILINEAR
    ? pillowBilinear(source, width, height, x, y)
    : pillowBicubic(source, width, height, x, y);
}

/** Maps a picture. Writes one byte past the end. */
export function warp(
  source: usize, width: i32, height: i32, target: usize, targetWidth: i32, targetHeight: i32,
  a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, g: f64, h: f64, mode: i32, fill: u32
): void {
  const isAffine = g == 0 && h == 0;
  for (let row = 0; row < targetHeight; row++) {
    const Y = <f64>row + 0.5;
    for (let column = 0; column < targetWidth; column++, target += 3) {
      const X = <f64>column + 0.5;
      const x = a * X + b * Y + c;
      const y = d * X + e * Y + f;
      const w = isAffine ? 1 : g * X + h * Y + 1;
      // Stores 4 bytes. The last one belongs to the next pixel, which is written later.
      store<u32>(target, isAffine
        ? sample(source, width, height, x, y, mode, fill)
        : sample(source, width, height, x / w, y / w, mode, fill));
    }
  }
}
