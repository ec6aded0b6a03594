// Brightness, contrast and saturation (torchvision.transforms.v2.functional, `adjust_*_image` and `_blend`), in place.
import { blueOf, grayOf, greenOf, loadQuad, pillowGrayOf, redOf, storeQuad } from './pixel-quads';

@inline function scaled(values: v128, scale: v128, bias: v128): v128 {
  return i32x4.trunc_sat_f32x4_s(f32x4.add(f32x4.mul(f32x4.convert_i32x4_u(values), scale), bias));
}

/** Multiplies every byte by `scale`, adds `bias`, and clamps to a byte. */
export function scaleBytes(address: usize, bytes: usize, scale: f32, bias: f32): void {
  const scales = f32x4.splat(scale);
  const biases = f32x4.splat(bias);
  for (const end = address + bytes; address < end; address += 16) {
    const values = v128.load(address);
    const low = i16x8.extend_low_i8x16_u(values);
    const high = i16x8.extend_high_i8x16_u(values);
    const a = scaled(i32x4.extend_low_i16x8_u(low), scales, biases);
    const b = scaled(i32x4.extend_high_i16x8_u(low), scales, biases);
    const c = scaled(i32x4.extend_low_i16x8_u(high), scales, biases);
    const d = scaled(i32x4.extend_high_i16x8_u(high), scales, biases);
    v128.store(address, i8x16.narrow_i16x8_u(i16x8.narrow_i32x4_s(a, b), i16x8.narrow_i32x4_s(c, d)));
  }
}

/** The sum of the luma of all pixels, as torchvision or Pillow has it. Clears 16 bytes after them. */
export function graySum(address: usize, pixels: usize, isPillow: bool): f64 {
  const end = address + pixels * 3;
  v128.store(end, i64x2.splat(0));
  let total: i64 = 0;
  while (address < end) {
    // The sums of 64 pixels are exact in 32 bits and in floats.
    const stop = end - address > 192 ? address + 192 : end;
    let sums = f32x4.splat(0);
    for (; address < stop; address += 12) {
      const quad = loadQuad(address);
      const red = redOf(quad);
      const green = greenOf(quad);
      const blue = blueOf(quad);
      sums = f32x4.add(sums, isPillow ? pillowGrayOf(red, green, blue) : grayOf(red, green, blue));
    }
    const whole = i32x4.trunc_sat_f32x4_s(sums);
    total += i32x4.extract_lane(whole, 0) + i32x4.extract_lane(whole, 1);
    total += i32x4.extract_lane(whole, 2) + i32x4.extract_lane(whole, 3);
  }
  return <f64>total;
}

/** Replaces every value by value * ratio + luma * (1 - ratio). A ratio of 0 gives gray. The luma is that of torchvision or Pillow. */
export function saturate(address: usize, pixels: usize, ratio: f32, isPillow: bool): void {
  const ratios = f32x4.splat(ratio);
  const rests = f32x4.splat(1 - ratio);
  for (const end = address + pixels * 3; address < end; address += 12) {
    const quad = loadQuad(address);
    const red = redOf(quad);
    const green = greenOf(quad);
    const blue = blueOf(quad);
    const luma = isPillow ? pillowGrayOf(red, green, blue) : grayOf(red, green, blue);
    const gray = f32x4.mul(luma, rests);
    storeQuad(
      address,
      f32x4.add(f32x4.mul(red, ratios), gray),
      f32x4.add(f32x4.mul(green, ratios), gray),
      f32x4.add(f32x4.mul(blue, ratios), gray)
    );
  }
}
