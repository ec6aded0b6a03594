// Four pixels of RGB at a time: 12 bytes, as three vectors of floats.

/** Loads 4 pixels as [r g b x] of 8 bits each. Reads 4 bytes past them. */
@inline export function loadQuad(at: usize): v128 {
  const bytes = v128.load(at);
  return i8x16.shuffle(bytes, bytes, 0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
}

@inline export function redOf(quad: v128): v128 {
  return f32x4.convert_i32x4_s(v128.and(quad, i32x4.splat(0xff)));
}

@inline export function greenOf(quad: v128): v128 {
  return f32x4.convert_i32x4_s(v128.and(i32x4.shr_u(quad, 8), i32x4.splat(0xff)));
}

@inline export function blueOf(quad: v128): v128 {
  return f32x4.convert_i32x4_s(v128.and(i32x4.shr_u(quad, 16), i32x4.splat(0xff)));
}

/** Truncates to integers as a conversion to uint8 does, and clamps to 0 to 255. */
@inline function toByte(values: v128): v128 {
  return i32x4.trunc_sat_f32x4_s(f32x4.pmin(f32x4.splat(255), f32x4.pmax(f32x4.splat(0), values)));
}

/** Writes 4 pixels and nothing after them, because the next four pixels may not have been read yet. */
@inline export function storeQuad(at: usize, red: v128, green: v128, blue: v128): void {
  const quad = v128.or(toByte(red), v128.or(i32x4.shl(toByte(green), 8), i32x4.shl(toByte(blue), 16)));
  const bytes = i8x16.shuffle(quad, quad, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 3, 3, 3);
  v128.store64_lane(at, bytes, 0);
  v128.store32_lane(at, bytes, 2, 8);
}

/** Luma, truncated to an integer (torchvision's `_rgb_to_grayscale_image`, floored for uint8). */
@inline export function grayOf(red: v128, green: v128, blue: v128): v128 {
  return f32x4.floor(
    f32x4.add(
      f32x4.add(f32x4.mul(red, f32x4.splat(0.2989)), f32x4.mul(green, f32x4.splat(0.587))),
      f32x4.mul(blue, f32x4.splat(0.114))
    )
  );
}

/** Luma as Pillow's mode L has it: in units of 1/65536, rounded. Exact in floats of 32 bits. */
@inline export function pillowGrayOf(red: v128, green: v128, blue: v128): v128 {
  const sum = f32x4.add(
    f32x4.add(f32x4.mul(red, f32x4.splat(19595)), f32x4.mul(green, f32x4.splat(38470))),
    f32x4.add(f32x4.mul(blue, f32x4.splat(7471)), f32x4.splat(32768))
  );
  return f32x4.floor(f32x4.mul(sum, f32x4.splat(1 / 65536)));
}
