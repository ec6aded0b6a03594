// HSV of bytes as OpenCV has it (imgproc/src/color_hsv.simd.hpp): a hue of 0 to 179, saturation and value of 0 to 255. Four pixels at a
// time, with the same operations in the same order as one at a time, so that every value is the same.
import { blueOf, greenOf, loadQuad, redOf, storeQuad } from './pixel-quads';

/**
 * Rounds (numerator << 12) / denominator as OpenCV's tables do. The float is exact enough: its error is less than the distance of the quotient
 * from a half, 1 / (2 * denominator), because numerator << 13 is less than 2^24.
 */
@inline function share(numerator: f32, denominator: v128): v128 {
  return f32x4.nearest(f32x4.div(f32x4.splat(numerator * 4096), denominator));
}

/** factor * share, in units of 1/4096, rounded. */
@inline function scaled(factor: v128, share: v128): v128 {
  const product = i32x4.mul(i32x4.trunc_sat_f32x4_s(factor), i32x4.trunc_sat_f32x4_s(share));
  return i32x4.shr_s(i32x4.add(product, i32x4.splat(2048)), 12);
}

/** The entries of four indices in a table of bytes, as floats. */
@inline function lookUp(table: usize, indices: v128): v128 {
  let found = v128.load8_lane(table + i32x4.extract_lane(indices, 0), i32x4.splat(0), 0);
  found = v128.load8_lane(table + i32x4.extract_lane(indices, 1), found, 4);
  found = v128.load8_lane(table + i32x4.extract_lane(indices, 2), found, 8);
  found = v128.load8_lane(table + i32x4.extract_lane(indices, 3), found, 12);
  return f32x4.convert_i32x4_s(found);
}

@inline function complement(values: v128): v128 {
  return f32x4.sub(f32x4.splat(1), values);
}

/** v * (1 - part), 0 to 255. */
@inline function level(v: v128, part: v128): v128 {
  return f32x4.mul(f32x4.mul(v, complement(part)), f32x4.splat(255));
}

/** A channel that has `high` in the sectors `first` and `second`, `rising` or `falling` in the sectors around these, and otherwise `low`. */
@inline function channel(
  sector: v128, first: f32, second: f32, rises: f32, falls: f32, high: v128, rising: v128, falling: v128, low: v128
): v128 {
  const isHigh = v128.or(f32x4.eq(sector, f32x4.splat(first)), f32x4.eq(sector, f32x4.splat(second)));
  const ifFalls = v128.bitselect(falling, low, f32x4.eq(sector, f32x4.splat(falls)));
  const ifRises = v128.bitselect(rising, ifFalls, f32x4.eq(sector, f32x4.splat(rises)));
  return v128.bitselect(high, ifRises, isHigh);
}

/** Replaces hue, saturation and value of every pixel by their entries in `tables`, 3 x 256 bytes. Writes up to 9 bytes past the last pixel. */
export function lookUpHsv(address: usize, pixels: usize, tables: usize): void {
  for (const end = address + pixels * 3; address < end; address += 12) {
    const quad = loadQuad(address);
    const red = redOf(quad);
    const green = greenOf(quad);
    const blue = blueOf(quad);
    const value = f32x4.pmax(red, f32x4.pmax(green, blue));
    const range = f32x4.sub(value, f32x4.pmin(red, f32x4.pmin(green, blue)));
    const saturation = scaled(range, share(255, f32x4.pmax(value, f32x4.splat(1))));
    const isRed = f32x4.eq(value, red);
    const isGreen = f32x4.eq(value, green);
    const ifGreen = f32x4.add(f32x4.sub(blue, red), f32x4.add(range, range));
    const ifBlue = f32x4.add(f32x4.sub(red, green), f32x4.mul(range, f32x4.splat(4)));
    const turn = v128.bitselect(f32x4.sub(green, blue), v128.bitselect(ifGreen, ifBlue, isGreen), isRed);
    const sixth = scaled(turn, share(180, f32x4.mul(f32x4.pmax(range, f32x4.splat(1)), f32x4.splat(6))));
    const hue = i32x4.add(sixth, v128.and(i32x4.splat(180), i32x4.shr_s(sixth, 31)));
    const s = f32x4.mul(lookUp(tables + 256, saturation), f32x4.splat(1.0 / 255));
    const v = f32x4.mul(lookUp(tables + 512, i32x4.trunc_sat_f32x4_s(value)), f32x4.splat(1.0 / 255));
    const h = f32x4.mul(lookUp(tables, hue), f32x4.splat(6.0 / 180));
    const sector = f32x4.floor(h);
    const part = f32x4.sub(h, sector);
    const low = level(v, s);
    const falling = level(v, f32x4.mul(s, part));
    const rising = level(v, f32x4.mul(s, complement(part)));
    const high = f32x4.mul(v, f32x4.splat(255));
    storeQuad(
      address, channel(sector, 0, 5, 4, 1, high, rising, falling, low), channel(sector, 1, 2, 0, 3, high, rising, falling, low),
      channel(sector, 3, 4, 2, 5, high, rising, falling, low)
    );
  }
}
