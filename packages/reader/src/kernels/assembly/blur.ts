// Gaussian blur (torchvision.transforms.v2.functional `gaussian_blur_image`): first along rows, then along columns, in
// floats, rounded once at the end; pixels beyond an edge are those before it, mirrored.

@inline function floats(values: v128): v128 {
  return f32x4.convert_i32x4_u(values);
}

/** A row of bytes as floats. Writes whole steps of 16. */
function widen(source: usize, values: usize, target: usize): void {
  for (const end = source + values; source < end; source += 16, target += 64) {
    const bytes = v128.load(source);
    const low = i16x8.extend_low_i8x16_u(bytes);
    const high = i16x8.extend_high_i8x16_u(bytes);
    v128.store(target, floats(i32x4.extend_low_i16x8_u(low)));
    v128.store(target, floats(i32x4.extend_high_i16x8_u(low)), 16);
    v128.store(target, floats(i32x4.extend_low_i16x8_u(high)), 32);
    v128.store(target, floats(i32x4.extend_high_i16x8_u(high)), 48);
  }
}

@inline function copyPixel(target: usize, source: usize): void {
  store<f32>(target, load<f32>(source));
  store<f32>(target, load<f32>(source, 4), 4);
  store<f32>(target, load<f32>(source, 8), 8);
}

/** Mirrors `radius` pixels to the left and to the right of the floats of a row. */
function mirrorEnds(row: usize, width: i32, radius: i32): void {
  const last = row + <usize>((width - 1) * 12);
  for (let i = 1; i <= radius; i++) {
    const distance = <usize>(i * 12);
    copyPixel(row - distance, row + distance);
    copyPixel(last + distance, last - distance);
  }
}

@inline function addPair(sum: v128, a: usize, b: usize, weight: v128): v128 {
  return f32x4.add(sum, f32x4.mul(f32x4.add(v128.load(a), v128.load(b)), weight));
}

/** Sums along a row: 16 values at a time, of which the neighbours are 12 bytes apart. */
function blurRow(row: usize, values: usize, weights: usize, radius: i32, target: usize): void {
  const middle = v128.load32_splat(weights);
  const endOfWeights = weights + <usize>(radius << 2);
  for (const end = row + (values << 2); row < end; row += 64, target += 64) {
    let s0 = f32x4.mul(v128.load(row), middle);
    let s1 = f32x4.mul(v128.load(row, 16), middle);
    let s2 = f32x4.mul(v128.load(row, 32), middle);
    let s3 = f32x4.mul(v128.load(row, 48), middle);
    let before = row;
    let after = row;
    for (let at = weights; at < endOfWeights; ) {
      at += 4;
      before -= 12;
      after += 12;
      const weight = v128.load32_splat(at);
      s0 = addPair(s0, before, after, weight);
      s1 = addPair(s1, before + 16, after + 16, weight);
      s2 = addPair(s2, before + 32, after + 32, weight);
      s3 = addPair(s3, before + 48, after + 48, weight);
    }
    v128.store(target, s0);
    v128.store(target, s1, 16);
    v128.store(target, s2, 32);
    v128.store(target, s3, 48);
  }
}

@inline function rounded(sum: v128): v128 {
  return i32x4.trunc_sat_f32x4_s(f32x4.nearest(sum));
}

/** One row of the result. `rows` holds the addresses of the row itself, and of the pairs at distance 1, 2, ... */
function blurColumns(rows: usize, values: usize, weights: usize, radius: i32, target: usize): void {
  const middle = v128.load32_splat(weights);
  const centre = load<u32>(rows);
  const endOfWeights = weights + <usize>(radius << 2);
  for (let at: usize = 0, end = values << 2; at < end; at += 64, target += 16) {
    let s0 = f32x4.mul(v128.load(centre + at), middle);
    let s1 = f32x4.mul(v128.load(centre + at, 16), middle);
    let s2 = f32x4.mul(v128.load(centre + at, 32), middle);
    let s3 = f32x4.mul(v128.load(centre + at, 48), middle);
    let pair = rows + 4;
    for (let w = weights; w < endOfWeights; pair += 8) {
      w += 4;
      const weight = v128.load32_splat(w);
      const above = load<u32>(pair) + at;
      const below = load<u32>(pair, 4) + at;
      s0 = addPair(s0, above, below, weight);
      s1 = addPair(s1, above + 16, below + 16, weight);
      s2 = addPair(s2, above + 32, below + 32, weight);
      s3 = addPair(s3, above + 48, below + 48, weight);
    }
    const low = i16x8.narrow_i32x4_s(rounded(s0), rounded(s1));
    const high = i16x8.narrow_i32x4_s(rounded(s2), rounded(s3));
    v128.store(target, i8x16.narrow_i16x8_u(low, high));
  }
}

/** Row `y`, mirrored where it lies beyond an edge. */
@inline function mirrored(y: i32, height: i32): i32 {
  return y < 0 ? -y : y >= height ? 2 * (height - 1) - y : y;
}

/**
 * Weights are the middle one and those at distance 1, 2, ... up to the radius, which is less than the width or the height.
 * `line` is the middle of a buffer of a row's floats with radiusX pixels on each side; `ring` has room for 2 * radiusY + 1
 * rows of `pitch` bytes, `rows` for as many addresses. Line and rows have 64 bytes more at their end.
 */
export function blur(
  source: usize, width: i32, height: i32, target: usize, weightsX: usize, radiusX: i32, weightsY: usize, radiusY: i32,
  line: usize, ring: usize, pitch: usize, rows: usize
): void {
  const values = <usize>(width * 3);
  const slots = 2 * radiusY + 1;
  for (let y = 0; y < height + radiusY; y++) {
    if (y < height) {
      widen(source + <usize>y * values, values, line);
      mirrorEnds(line, width, radiusX);
      blurRow(line, values, weightsX, radiusX, ring + <usize>(y % slots) * pitch);
    }
    const finished = y - radiusY;
    if (finished < 0) continue;
    store<u32>(rows, ring + <usize>(finished % slots) * pitch);
    for (let distance = 1; distance <= radiusY; distance++) {
      const pair = rows + <usize>(distance * 8 - 4);
      store<u32>(pair, ring + <usize>(mirrored(finished - distance, height) % slots) * pitch);
      store<u32>(pair, ring + <usize>(mirrored(finished + distance, height) % slots) * pitch, 4);
    }
    blurColumns(rows, values, weightsY, radiusY, target + <usize>finished * values);
  }
}
