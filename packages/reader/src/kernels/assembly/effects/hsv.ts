// HSV of bytes as OpenCV has it (imgproc/src/color_hsv.simd.hpp): a hue of 0 to 179, saturation and value of 0 to 255.

/** Rounds (numerator << 12) / denominator as OpenCV's tables do. */
@inline function share(numerator: f64, denominator: f64): i32 {
  return denominator == 0 ? 0 : <i32>nearest(numerator * 4096 / denominator);
}

/** Truncates, as OpenCV does here. */
@inline function toByte(value: f32): u32 {
  return <u32>max(0, min(255, <i32>(value * 255)));
}

/** Replaces hue, saturation and value of every pixel by their entries in `tables`, 3 x 256 bytes. */
export function lookUpHsv(address: usize, pixels: usize, tables: usize): void {
  for (const end = address + pixels * 3; address < end; address += 3) {
    const red = <i32>load<u8>(address);
    const green = <i32>load<u8>(address, 1);
    const blue = <i32>load<u8>(address, 2);
    const value = max(red, max(green, blue));
    const range = value - min(red, min(green, blue));
    const saturation = (range * share(255, <f64>value) + 2048) >> 12;
    const turn = value == red ? green - blue : value == green ? blue - red + 2 * range : red - green + 4 * range;
    let hue = (turn * share(180, 6 * <f64>range) + 2048) >> 12;
    if (hue < 0) hue += 180;
    const s = <f32>load<u8>(tables + <usize>saturation, 256) * (1.0 / 255);
    const v = <f32>load<u8>(tables + <usize>value, 512) * (1.0 / 255);
    const h = <f32>load<u8>(tables + <usize>hue) * (6.0 / 180);
    const sector = <i32>floor(h);
    const part = h - floor(h);
    const low = toByte(v * (1 - s));
    const falling = toByte(v * (1 - s * part));
    const rising = toByte(v * (1 - s * (1 - part)));
    const high = toByte(v);
    store<u8>(address, sector == 0 || sector == 5 ? high : sector == 1 ? falling : sector == 4 ? rising : low);
    store<u8>(address, sector == 1 || sector == 2 ? high : sector == 0 ? rising : sector == 3 ? falling : low, 1);
    store<u8>(address, sector == 3 || sector == 4 ? high : sector == 2 ? rising : sector == 5 ? falling : low, 2);
  }
}
