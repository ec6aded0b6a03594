// HSV of bytes as OpenCV has it (imgproc/src/color_hsv.simd.hpp): a hue of 0 to 179, saturation and value of 0 to 255. Pixels are converted to
// HSV four at a time, and back one at a time with its three channels in a vector, with the operations that OpenCV does for one value.
import { loadQuad } from './pixel-quads';

/** Adding it to a float below 2^22 rounds it to an integer, half to even. The bits of the sum are those of the integer plus {@link BITS}. */
const TO_INTEGER: f32 = 12582912;
const BITS: i32 = 0x4b400000;

/** Offsets in the floats of {@link expand}: saturation, value, then three channels and a gap per hue. */
const VALUES: usize = 1024;
const HUES: usize = 2048;

/**
 * Rounds numerator / denominator as OpenCV's tables do. The float is exact enough: its error is less than the distance of the quotient
 * from a half, 1 / (2 * denominator), because twice the numerator is less than 2^24.
 */
@inline function share(numerator: f32, denominator: v128): v128 {
  const quotient = f32x4.div(f32x4.splat(numerator), f32x4.convert_i32x4_s(denominator));
  return i32x4.sub(f32x4.add(quotient, f32x4.splat(TO_INTEGER)), i32x4.splat(BITS));
}

/** factor * share, in units of 1/4096, rounded. */
@inline function scaled(factor: v128, share: v128): v128 {
  return i32x4.shr_s(i32x4.add(i32x4.mul(factor, share), i32x4.splat(2048)), 12);
}

/** The part of the saturation by which a channel is less than the value: none in two sectors of the hue, a share in the ones around these. */
function weightOf(sector: f32, part: f32, first: f32, second: f32, rises: f32, falls: f32): f32 {
  if (sector == first || sector == second) return 0;
  if (sector == falls) return part;
  return sector == rises ? 1 - part : 1;
}

/** Makes floats of `tables`: 256 saturations and 256 values from 0 to 1, and the weights of the channels for 180 hues. */
function expand(tables: usize, floats: usize): void {
  for (let i: usize = 0; i < 256; i++) {
    store<f32>(floats + i * 4, <f32>load<u8>(tables + 256 + i) * <f32>(1.0 / 255));
    store<f32>(floats + VALUES + i * 4, <f32>load<u8>(tables + 512 + i) * <f32>(1.0 / 255));
  }
  for (let i: usize = 0; i < 180; i++) {
    const h = <f32>load<u8>(tables + i) * <f32>(6.0 / 180);
    const sector = floor<f32>(h);
    const part = h - sector;
    const to = floats + HUES + i * 16;
    store<f32>(to, weightOf(sector, part, 0, 5, 4, 1));
    store<f32>(to, weightOf(sector, part, 1, 2, 0, 3), 4);
    store<f32>(to, weightOf(sector, part, 3, 4, 2, 5), 8);
    store<f32>(to, 0, 12);
  }
}

/** The channels of a pixel in the lowest bytes of three words: value * (1 - saturation * weight), truncated. */
@inline function channels(floats: usize, hue: i32, saturation: i32, value: i32): v128 {
  const weights = v128.load(floats + HUES + (hue << 4));
  const parts = f32x4.mul(v128.load32_splat(floats + (saturation << 2)), weights);
  const shares = f32x4.mul(v128.load32_splat(floats + VALUES + (value << 2)), f32x4.sub(f32x4.splat(1), parts));
  const level = f32x4.mul(shares, f32x4.splat(255));
  return f32x4.add(f32x4.floor(level), f32x4.splat(8388608));
}

/**
 * Replaces hue, saturation and value of every pixel by their entries in `tables`, 3 x 256 bytes, which are followed by 4,928 bytes of working
 * memory. Writes up to 9 bytes past the last pixel.
 */
export function lookUpHsv(address: usize, pixels: usize, tables: usize): void {
  const floats = tables + 768;
  expand(tables, floats);
  for (const end = address + pixels * 3; address < end; address += 12) {
    const quad = loadQuad(address);
    const red = v128.and(quad, i32x4.splat(0xff));
    const green = v128.and(i32x4.shr_u(quad, 8), i32x4.splat(0xff));
    const blue = v128.and(i32x4.shr_u(quad, 16), i32x4.splat(0xff));
    const value = i32x4.max_s(red, i32x4.max_s(green, blue));
    const range = i32x4.sub(value, i32x4.min_s(red, i32x4.min_s(green, blue)));
    const saturation = scaled(range, share(255 * 4096, i32x4.max_s(value, i32x4.splat(1))));
    const ifGreen = i32x4.add(i32x4.sub(blue, red), i32x4.add(range, range));
    const ifBlue = i32x4.add(i32x4.sub(red, green), i32x4.shl(range, 2));
    const ifOther = v128.bitselect(ifGreen, ifBlue, i32x4.eq(value, green));
    const turn = v128.bitselect(i32x4.sub(green, blue), ifOther, i32x4.eq(value, red));
    const sixth = scaled(turn, share(30 * 4096, i32x4.max_s(range, i32x4.splat(1))));
    const hue = i32x4.add(sixth, v128.and(i32x4.splat(180), i32x4.shr_s(sixth, 31)));
    const first = channels(
      floats, i32x4.extract_lane(hue, 0), i32x4.extract_lane(saturation, 0), i32x4.extract_lane(value, 0)
    );
    const second = channels(
      floats, i32x4.extract_lane(hue, 1), i32x4.extract_lane(saturation, 1), i32x4.extract_lane(value, 1)
    );
    const third = channels(
      floats, i32x4.extract_lane(hue, 2), i32x4.extract_lane(saturation, 2), i32x4.extract_lane(value, 2)
    );
    const fourth = channels(
      floats, i32x4.extract_lane(hue, 3), i32x4.extract_lane(saturation, 3), i32x4.extract_lane(value, 3)
    );
    const left = i8x16.shuffle(first, second, 0, 4, 8, 16, 20, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const right = i8x16.shuffle(third, fourth, 0, 4, 8, 16, 20, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const bytes = i8x16.shuffle(left, right, 0, 1, 2, 3, 4, 5, 16, 17, 18, 19, 20, 21, 0, 0, 0, 0);
    v128.store64_lane(address, bytes, 0);
    v128.store32_lane(address, bytes, 2, 8);
  }
}
