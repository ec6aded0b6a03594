// Pillow's ImageFilter.GaussianBlur: three box blurs along rows, then three along columns, each rounded to bytes. A box has a fraction
// of a pixel at both ends. Pixels beyond an edge are those at the edge.

@inline function at(line: usize, x: i32, length: i32, step: usize): u32 {
  return load<u8>(line + <usize>max(0, min(x, length - 1)) * step);
}

/** Blurs one channel of a line once. Pixels are `step` bytes apart in `source`, and adjacent in `target`. */
function blurLine(source: usize, step: usize, length: i32, radius: i32, whole: u32, part: u32, target: usize): void {
  let sum: u32 = 0;
  for (let x = -radius - 1; x < radius; x++) sum += at(source, x, length, step);
  for (let x = 0; x < length; x++) {
    sum += at(source, x + radius, length, step) - at(source, x - radius - 1, length, step);
    const ends = at(source, x - radius - 1, length, step) + at(source, x + radius + 1, length, step);
    store<u8>(target + <usize>x, (sum * whole + ends * part + (1 << 23)) >> 24);
  }
}

/** Blurs all lines in place. `line` has room for two lines of one channel. */
function blurLines(
  address: usize, lines: i32, lineStep: usize, length: i32, step: usize, radius: i32, whole: u32, part: u32, line: usize
): void {
  const other = line + <usize>length;
  for (let i = 0; i < lines; i++) {
    for (let channel: usize = 0; channel < 3; channel++) {
      const first = address + <usize>i * lineStep + channel;
      blurLine(first, step, length, radius, whole, part, line);
      blurLine(line, 1, length, radius, whole, part, other);
      blurLine(other, 1, length, radius, whole, part, line);
      for (let x = 0; x < length; x++) store<u8>(first + <usize>x * step, load<u8>(line + <usize>x));
    }
  }
}

/** Blurs a picture in place. A box has 2 * radius + 1 pixels of weight `whole` / 2^24 and two of `part` / 2^24. */
export function boxBlur(address: usize, width: i32, height: i32, radius: i32, whole: u32, part: u32, line: usize): void {
  const pitch = <usize>(width * 3);
  blurLines(address, height, pitch, width, 3, radius, whole, part, line);
  blurLines(address, width, 3, height, pitch, radius, whole, part, line);
}
