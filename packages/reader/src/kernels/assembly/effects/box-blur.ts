// Pillow's ImageFilter.GaussianBlur: three box blurs along rows, then three along columns, each rounded to bytes. A box has a fraction
// of a pixel at both ends. Pixels beyond an edge are those at the edge. The three channels of a pixel are computed together.

/** The channels of a pixel as 32-bit integers. Reads 4 bytes. */
@inline function channelsOf(at: usize): v128 {
  return i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(at)));
}

@inline function pixelOf(line: usize, x: i32, length: i32, step: usize): v128 {
  return channelsOf(line + <usize>max(0, min(x, length - 1)) * step);
}

/** The weighted pixels of a box, rounded to bytes and stored. */
@inline function storePixel(target: usize, sum: v128, ends: v128, whole: v128, part: v128): void {
  const values = i32x4.add(i32x4.add(i32x4.mul(sum, whole), i32x4.mul(ends, part)), i32x4.splat(1 << 23));
  // The upper byte of each word.
  const bytes = i8x16.shuffle(values, values, 3, 7, 11, 15, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3);
  v128.store32_lane(target, bytes, 0);
}

/** Blurs a line once. Pixels are `step` bytes apart in `source`, and 4 in `target`. */
function blurLine(source: usize, step: usize, length: i32, radius: i32, whole: v128, part: v128, target: usize): void {
  let sum = i32x4.splat(0);
  for (let x = -radius - 1; x < radius; x++) sum = i32x4.add(sum, pixelOf(source, x, length, step));
  // The pixel that enters the box is at its end one step before.
  let entering = pixelOf(source, radius, length, step);
  // From here to there, the pixels that enter and leave the box are inside the line.
  const firstInside = min(length, radius + 1);
  const endInside = max(firstInside, length - radius - 1);
  let x = 0;
  for (; x < firstInside; x++, target += 4) {
    const leaving = pixelOf(source, x - radius - 1, length, step);
    sum = i32x4.add(sum, i32x4.sub(entering, leaving));
    entering = pixelOf(source, x + radius + 1, length, step);
    storePixel(target, sum, i32x4.add(leaving, entering), whole, part);
  }
  let left = source + <usize>(x - radius - 1) * step;
  let right = source + <usize>(x + radius + 1) * step;
  for (; x < endInside; x++, target += 4, left += step, right += step) {
    const leaving = channelsOf(left);
    sum = i32x4.add(sum, i32x4.sub(entering, leaving));
    entering = channelsOf(right);
    storePixel(target, sum, i32x4.add(leaving, entering), whole, part);
  }
  for (; x < length; x++, target += 4) {
    const leaving = pixelOf(source, x - radius - 1, length, step);
    sum = i32x4.add(sum, i32x4.sub(entering, leaving));
    entering = pixelOf(source, x + radius + 1, length, step);
    storePixel(target, sum, i32x4.add(leaving, entering), whole, part);
  }
}

/** Blurs all lines in place. `line` has room for two lines of 4 bytes a pixel. */
function blurLines(
  address: usize, lines: i32, lineStep: usize, length: i32, step: usize, radius: i32, whole: v128, part: v128, line: usize
): void {
  const other = line + (<usize>length << 2);
  for (let i = 0; i < lines; i++, address += lineStep) {
    blurLine(address, step, length, radius, whole, part, line);
    blurLine(line, 4, length, radius, whole, part, other);
    blurLine(other, 4, length, radius, whole, part, line);
    let target = address;
    for (let x = 0; x < length; x++, target += step) {
      const pixel = load<u32>(line + (<usize>x << 2));
      store<u16>(target, pixel);
      store<u8>(target, pixel >> 16, 2);
    }
  }
}

/**
 * Blurs a picture in place. A box has 2 * radius + 1 pixels of weight `whole` / 2^24 and two of `part` / 2^24. `line` has room for 8 bytes
 * for each pixel of the longer side.
 */
export function boxBlur(address: usize, width: i32, height: i32, radius: i32, whole: u32, part: u32, line: usize): void {
  const pitch = <usize>(width * 3);
  const wholes = i32x4.splat(whole);
  const parts = i32x4.splat(part);
  blurLines(address, height, pitch, width, 3, radius, wholes, parts, line);
  blurLines(address, width, 3, height, pitch, radius, wholes, parts, line);
}
