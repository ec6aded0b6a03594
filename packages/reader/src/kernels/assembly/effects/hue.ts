// Hue (torchvision.transforms.v2.functional `adjust_hue_image`): converts to hue, saturation and value as
// Pillow does, shifts the hue, and converts back. In place.
import { blueOf, greenOf, loadQuad, redOf, storeQuad } from './pixel-quads';

/** The hue in sixths of the circle, 0 to 6. It is 0 if all channels are equal; then `range` must be 1. */
@inline function hueOf(red: v128, green: v128, blue: v128, most: v128, range: v128): v128 {
  const fromRed = f32x4.div(f32x4.sub(most, red), range);
  const fromGreen = f32x4.div(f32x4.sub(most, green), range);
  const fromBlue = f32x4.div(f32x4.sub(most, blue), range);
  const isRed = f32x4.eq(most, red);
  const isGreen = f32x4.eq(most, green);
  const ifRed = f32x4.sub(fromBlue, fromGreen);
  const ifGreen = f32x4.sub(f32x4.add(fromRed, f32x4.splat(2)), fromBlue);
  const ifBlue = f32x4.sub(f32x4.add(fromGreen, f32x4.splat(4)), fromRed);
  return v128.bitselect(ifRed, v128.bitselect(ifGreen, ifBlue, isGreen), isRed);
}

/** The fraction of a turn, 0 to 1. */
@inline function withinTurn(turns: v128): v128 {
  return f32x4.sub(turns, f32x4.floor(turns));
}

/** torchvision's conversion of 0 to 1 to bytes, before truncation: times 255.999. */
@inline function levels(values: v128): v128 {
  return f32x4.mul(values, f32x4.splat(255.999));
}

/** Shifts hues. `turn` is a fraction of the hue circle, -0.5 to 0.5. */
export function shiftHue(address: usize, pixels: usize, turn: f32): void {
  const one = f32x4.splat(1);
  const zero = f32x4.splat(0);
  const turns = f32x4.splat(turn);
  const toOne = f32x4.splat(1 / 255);
  for (const end = address + pixels * 3; address < end; address += 12) {
    const quad = loadQuad(address);
    const red = f32x4.mul(redOf(quad), toOne);
    const green = f32x4.mul(greenOf(quad), toOne);
    const blue = f32x4.mul(blueOf(quad), toOne);
    const most = f32x4.pmax(red, f32x4.pmax(green, blue));
    const least = f32x4.pmin(red, f32x4.pmin(green, blue));
    const isGray = f32x4.eq(most, least);
    const range = f32x4.sub(most, least);
    const saturation = f32x4.div(range, v128.bitselect(one, most, isGray));
    const sixths = hueOf(red, green, blue, most, v128.bitselect(one, range, isGray));
    const hue = withinTurn(f32x4.add(withinTurn(f32x4.add(f32x4.mul(sixths, f32x4.splat(1 / 6)), one)), turns));

    const turned = f32x4.mul(hue, f32x4.splat(6));
    const sector = f32x4.floor(turned);
    const rest = f32x4.mul(saturation, f32x4.sub(turned, sector));
    const without = f32x4.sub(one, saturation);
    const q = f32x4.pmax(zero, f32x4.mul(f32x4.sub(one, rest), most));
    const t = f32x4.pmax(zero, f32x4.mul(f32x4.add(rest, without), most));
    const p = f32x4.pmax(zero, f32x4.mul(without, most));
    // Sectors 0 to 5: v t p, q v p, p v t, p q v, t p v, v p q. Sector 6 equals 0.
    const is1 = f32x4.eq(sector, one);
    const is2 = f32x4.eq(sector, f32x4.splat(2));
    const is3 = f32x4.eq(sector, f32x4.splat(3));
    const is4 = f32x4.eq(sector, f32x4.splat(4));
    const is5 = f32x4.eq(sector, f32x4.splat(5));
    const is23 = v128.or(is2, is3);
    const is12 = v128.or(is1, is2);
    const is34 = v128.or(is3, is4);
    const newRed = v128.bitselect(p, v128.bitselect(q, v128.bitselect(t, most, is4), is1), is23);
    const newGreen = v128.bitselect(most, v128.bitselect(q, v128.bitselect(p, t, v128.or(is4, is5)), is3), is12);
    const newBlue = v128.bitselect(most, v128.bitselect(t, v128.bitselect(q, p, is5), is2), is34);
    storeQuad(address, levels(newRed), levels(newGreen), levels(newBlue));
  }
}
