// Measures a picture of RGB bytes without gaps, for `inspect`. Sums are exact, and floats are added in the order of a plain loop. The
// caller provides all memory.

/**
 * Computes the brightness of each pixel, one byte each (ITU-R BT.601, in units of 1/256), 16 pixels at a time. Counts the values in
 * eight histograms of 256 words, which must be zero before and are added up by the caller. Writes six words to `sums`: the sum of each
 * channel, then the sum of its squares. `pixels` is a multiple of 256, and at most 2^16. Reads 4 bytes past the source.
 */
export function measureBrightness(source: usize, pixels: usize, light: usize, counts: usize, sums: usize): void {
  let redBlue = i32x4.splat(0);
  let red = i32x4.splat(0);
  let green = i32x4.splat(0);
  let redBlue2 = i32x4.splat(0);
  let red2 = i32x4.splat(0);
  let green2 = i32x4.splat(0);
  for (const end = light + pixels; light < end; ) {
    // The sums of 256 pixels fit words of 16 bits.
    let words = i16x8.splat(0);
    let greenWords = i16x8.splat(0);
    for (const stop = light + 256; light < stop; light += 16, source += 48) {
      const a = quadAt(source);
      const b = quadAt(source + 12);
      const c = quadAt(source + 24);
      const d = quadAt(source + 36);
      const bytes = i8x16.narrow_i16x8_u(
        i16x8.narrow_i32x4_u(lightOf(a), lightOf(b)),
        i16x8.narrow_i32x4_u(lightOf(c), lightOf(d))
      );
      v128.store(light, bytes);
      count(counts, i64x2.extract_lane(bytes, 0));
      count(counts, i64x2.extract_lane(bytes, 1));
      words = i16x8.add(words, i16x8.add(i16x8.add(redBlueOf(a), redBlueOf(b)), i16x8.add(redBlueOf(c), redBlueOf(d))));
      greenWords = i16x8.add(greenWords, i16x8.add(i16x8.add(greenOf(a), greenOf(b)), i16x8.add(greenOf(c), greenOf(d))));
      redBlue2 = i32x4.add(redBlue2, squaresOf(redBlueOf(a), redBlueOf(b), redBlueOf(c), redBlueOf(d)));
      red2 = i32x4.add(red2, squaresOf(redOf(a), redOf(b), redOf(c), redOf(d)));
      green2 = i32x4.add(green2, squaresOf(greenOf(a), greenOf(b), greenOf(c), greenOf(d)));
    }
    redBlue = i32x4.add(redBlue, i32x4.extadd_pairwise_i16x8_u(words));
    red = i32x4.add(red, v128.and(words, i32x4.splat(0xffff)));
    green = i32x4.add(green, greenWords);
  }
  store<u32>(sums, total(red));
  store<u32>(sums, total(green), 4);
  store<u32>(sums, total(redBlue) - total(red), 8);
  store<u32>(sums, total(red2), 12);
  store<u32>(sums, total(green2), 16);
  // The sum of red and blue may overflow 2^32; subtracting red gives the right result anyway.
  store<u32>(sums, total(redBlue2) - total(red2), 20);
}

/** Loads 4 pixels as [r g b 0] of 8 bits each. */
@inline function quadAt(source: usize): v128 {
  return i8x16.swizzle(v128.load(source), i8x16(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
}

/** Red and blue, [r b] of 16 bits each. */
@inline function redBlueOf(quad: v128): v128 {
  return v128.and(quad, i32x4.splat(0x00ff00ff));
}

/** Red of 4 pixels, 32 bits each. */
@inline function redOf(quad: v128): v128 {
  return v128.and(quad, i32x4.splat(0xff));
}

@inline function greenOf(quad: v128): v128 {
  return i16x8.shr_u(quad, 8);
}

@inline function lightOf(quad: v128): v128 {
  const sum = i32x4.add(
    i32x4.dot_i16x8_s(redBlueOf(quad), i32x4.splat((29 << 16) | 77)),
    i32x4.dot_i16x8_s(greenOf(quad), i32x4.splat(150))
  );
  return i32x4.shr_u(i32x4.add(sum, i32x4.splat(128)), 8);
}

@inline function squaresOf(a: v128, b: v128, c: v128, d: v128): v128 {
  return i32x4.add(
    i32x4.add(i32x4.dot_i16x8_s(a, a), i32x4.dot_i16x8_s(b, b)),
    i32x4.add(i32x4.dot_i16x8_s(c, c), i32x4.dot_i16x8_s(d, d))
  );
}

@inline function total(sums: v128): u32 {
  return (
    i32x4.extract_lane(sums, 0) + i32x4.extract_lane(sums, 1) + i32x4.extract_lane(sums, 2) + i32x4.extract_lane(sums, 3)
  );
}

/** Counts eight bytes. Neighbours are often equal, so each byte uses a different histogram: the previous increment may not have reached memory yet. */
@inline function count(counts: usize, bytes: u64): void {
  countOne(counts, <u32>bytes & 0xff);
  countOne(counts + 1024, <u32>(bytes >> 8) & 0xff);
  countOne(counts + 2048, <u32>(bytes >> 16) & 0xff);
  countOne(counts + 3072, <u32>(bytes >> 24) & 0xff);
  countOne(counts + 4096, <u32>(bytes >> 32) & 0xff);
  countOne(counts + 5120, <u32>(bytes >> 40) & 0xff);
  countOne(counts + 6144, <u32>(bytes >> 48) & 0xff);
  countOne(counts + 7168, <u32>(bytes >> 56));
}

@inline function countOne(counts: usize, value: u32): void {
  const at = counts + (<usize>value << 2);
  store<u32>(at, load<u32>(at) + 1);
}

/**
 * Computes the Laplacian (the four neighbours minus four times the pixel) of all pixels of a square that have four neighbours. Writes
 * its sum and the sum of its squares, two floats of 64 bits. `side` is a multiple of 16, and at most 256.
 */
export function laplacian(light: usize, side: usize, target: usize): void {
  let sum: i64 = 0;
  let squares: i64 = 0;
  // The last 16 pixels of a row that have a right neighbour. The first two of them were part of the 16 before.
  const rest = i8x16(0, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const whole = i8x16.splat(-1);
  for (let y: usize = 1; y < side - 1; y++) {
    let rowSum = i32x4.splat(0);
    let rowSquares = i32x4.splat(0);
    const row = light + y * side;
    for (let x: usize = 1; x < side - 1; x += 16) {
      const isLast = x + 16 > side - 1;
      const at = row + (isLast ? side - 17 : x);
      const here = v128.load(at);
      const up = v128.load(at - side);
      const down = v128.load(at + side);
      const left = v128.load(at - 1);
      const right = v128.load(at, 1);
      const mask = isLast ? rest : whole;
      const low = v128.and(bendOf(
        i16x8.extend_low_i8x16_u(here), i16x8.extend_low_i8x16_u(up), i16x8.extend_low_i8x16_u(down),
        i16x8.extend_low_i8x16_u(left), i16x8.extend_low_i8x16_u(right)
      ), i16x8.extend_low_i8x16_s(mask));
      const high = v128.and(bendOf(
        i16x8.extend_high_i8x16_u(here), i16x8.extend_high_i8x16_u(up), i16x8.extend_high_i8x16_u(down),
        i16x8.extend_high_i8x16_u(left), i16x8.extend_high_i8x16_u(right)
      ), i16x8.extend_high_i8x16_s(mask));
      rowSum = i32x4.add(rowSum, i32x4.extadd_pairwise_i16x8_s(i16x8.add(low, high)));
      rowSquares = i32x4.add(rowSquares, i32x4.add(i32x4.dot_i16x8_s(low, low), i32x4.dot_i16x8_s(high, high)));
    }
    sum += <i32>total(rowSum);
    squares += <i64>total(rowSquares);
  }
  store<f64>(target, <f64>sum);
  store<f64>(target, <f64>squares, 8);
}

@inline function bendOf(here: v128, up: v128, down: v128, left: v128, right: v128): v128 {
  return i16x8.sub(i16x8.add(i16x8.add(up, down), i16x8.add(left, right)), i16x8.shl(here, 2));
}

/** Number of cells along each side. */
const CELLS: i32 = 32;
/** Number of frequencies along each side. */
const FREQUENCIES: usize = 10;

/**
 * Computes the means of {@link CELLS} x {@link CELLS} cells of a square without `margin` pixels at each side, as floats of 64 bits.
 * `scratch` has two bytes per column. `side` is a multiple of 16, and no cell has more than 128 rows.
 */
export function meanCells(light: usize, side: i32, margin: i32, target: usize, scratch: usize): void {
  for (let cellY = 0; cellY < CELLS; cellY++) {
    const top = edge(cellY, side, margin);
    const bottom = edge(cellY + 1, side, margin);
    for (let x = 0; x < side; x += 16) {
      let low = i16x8.splat(0);
      let high = i16x8.splat(0);
      for (let y = top; y < bottom; y++) {
        const bytes = v128.load(light + y * side + x);
        low = i16x8.add(low, i16x8.extend_low_i8x16_u(bytes));
        high = i16x8.add(high, i16x8.extend_high_i8x16_u(bytes));
      }
      v128.store(scratch + 2 * x, low);
      v128.store(scratch + 2 * x, high, 16);
    }
    for (let cellX = 0; cellX < CELLS; cellX++, target += 8) {
      const left = edge(cellX, side, margin);
      const right = edge(cellX + 1, side, margin);
      let sum = 0;
      for (let x = left; x < right; x++) sum += load<u16>(scratch + 2 * x);
      store<f64>(target, <f64>sum / <f64>((bottom - top) * (right - left)));
    }
  }
}

@inline function edge(cell: i32, side: i32, margin: i32): i32 {
  return margin + (cell * (side - 2 * margin)) / CELLS;
}

/**
 * Computes the lowest frequencies of {@link meanCells}, [down][across]. All values are floats of 64 bits. `cosines` is
 * [cell][frequency]; `scratch` has room for {@link CELLS} x {@link FREQUENCIES} values.
 */
export function lowFrequencies(cells: usize, cosines: usize, target: usize, scratch: usize): void {
  for (let y: usize = 0; y < <usize>CELLS; y++) {
    for (let f: usize = 0; f < FREQUENCIES; f += 2) {
      let sum = f64x2.splat(0);
      for (let x: usize = 0; x < <usize>CELLS; x++) {
        const cell = f64x2.splat(load<f64>(cells + 8 * (y * <usize>CELLS + x)));
        sum = f64x2.add(sum, f64x2.mul(cell, v128.load(cosines + 8 * (x * FREQUENCIES + f))));
      }
      v128.store(scratch + 8 * (y * FREQUENCIES + f), sum);
    }
  }
  for (let down: usize = 0; down < FREQUENCIES; down++) {
    for (let f: usize = 0; f < FREQUENCIES; f += 2) {
      let sum = f64x2.splat(0);
      for (let y: usize = 0; y < <usize>CELLS; y++) {
        const cosine = f64x2.splat(load<f64>(cosines + 8 * (y * FREQUENCIES + down)));
        sum = f64x2.add(sum, f64x2.mul(v128.load(scratch + 8 * (y * FREQUENCIES + f)), cosine));
      }
      v128.store(target + 8 * (down * FREQUENCIES + f), sum);
    }
  }
}
