// Hue (torchvision.transforms.v2.functional `adjust_hue_image`): converts to hue, saturation and value as Pillow does, shifts the hue,
// and converts back. In place. The formulas are those of hexagons (Smith: "Color gamut transform pairs", SIGGRAPH 1978), where
// saturation times value is the range of the channels, so that neither is computed.
import { blueOf, greenOf, loadQuad, redOf, storeQuad } from './pixel-quads';

/** The hue in sixths of the circle, -1 to 5. It is 0 if all channels are equal; then `range` must be 1. */
@inline function hueOf(red: v128, green: v128, blue: v128, most: v128, range: v128): v128 {
  const isRed = f32x4.eq(most, red);
  const isGreen = f32x4.eq(most, green);
  const ifOther = v128.bitselect(f32x4.sub(blue, red), f32x4.sub(red, green), isGreen);
  const difference = v128.bitselect(f32x4.sub(green, blue), ifOther, isRed);
  const offset = v128.andnot(v128.bitselect(f32x4.splat(2), f32x4.splat(4), isGreen), isRed);
  return f32x4.add(f32x4.div(difference, range), offset);
}

/** Limits values to 0 to 1. */
@inline function limited(values: v128): v128 {
  return f32x4.pmin(f32x4.splat(1), f32x4.pmax(f32x4.splat(0), values));
}

/** torchvision's conversion of 0 to 1 to bytes, before truncation: times 255.999. The values are those of bytes. */
@inline function levels(values: v128): v128 {
  return f32x4.mul(values, f32x4.splat(255.999 / 255));
}

/** Shifts hues. `turn` is a fraction of the hue circle, -0.5 to 0.5. */
export function shiftHue(address: usize, pixels: usize, turn: f32): void {
  const turns = f32x4.splat(turn * 6);
  for (const end = address + pixels * 3; address < end; address += 12) {
    const quad = loadQuad(address);
    const red = redOf(quad);
    const green = greenOf(quad);
    const blue = blueOf(quad);
    const most = f32x4.pmax(red, f32x4.pmax(green, blue));
    const least = f32x4.pmin(red, f32x4.pmin(green, blue));
    const range = f32x4.sub(most, least);
    const sixths = f32x4.add(hueOf(red, green, blue, most, f32x4.pmax(range, f32x4.splat(1))), turns);
    const hue = f32x4.sub(sixths, f32x4.mul(f32x4.splat(6), f32x4.floor(f32x4.mul(sixths, f32x4.splat(1 / 6)))));
    const redPart = limited(f32x4.sub(f32x4.abs(f32x4.sub(hue, f32x4.splat(3))), f32x4.splat(1)));
    const greenPart = limited(f32x4.sub(f32x4.splat(2), f32x4.abs(f32x4.sub(hue, f32x4.splat(2)))));
    const bluePart = limited(f32x4.sub(f32x4.splat(2), f32x4.abs(f32x4.sub(hue, f32x4.splat(4)))));
    storeQuad(
      address, levels(f32x4.add(least, f32x4.mul(range, redPart))), levels(f32x4.add(least, f32x4.mul(range, greenPart))),
      levels(f32x4.add(least, f32x4.mul(range, bluePart)))
    );
  }
}
