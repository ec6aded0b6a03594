// Mixes a row of a batch with another row, in place.

/** Mixes bytes: `weight` (in units of 1/256) of the target, the rest of `other`, rounded. `bytes` is a multiple of 16, or the end of a row. */
export function mixBytes(target: usize, other: usize, bytes: usize, weight: i32): void {
  const own = i16x8.splat(<i16>weight);
  const rest = i16x8.splat(<i16>(256 - weight));
  const half = i16x8.splat(128);
  const end = target + bytes;
  for (; end - target >= 16; target += 16, other += 16) {
    const a = v128.load(target);
    const b = v128.load(other);
    const low = i16x8.add(half, i16x8.add(i16x8.mul(i16x8.extend_low_i8x16_u(a), own), i16x8.mul(i16x8.extend_low_i8x16_u(b), rest)));
    const high = i16x8.add(half, i16x8.add(i16x8.mul(i16x8.extend_high_i8x16_u(a), own), i16x8.mul(i16x8.extend_high_i8x16_u(b), rest)));
    v128.store(target, i8x16.narrow_i16x8_u(i16x8.shr_u(low, 8), i16x8.shr_u(high, 8)));
  }
  for (; target < end; target++, other++) {
    store<u8>(target, (<i32>load<u8>(target) * weight + <i32>load<u8>(other) * (256 - weight) + 128) >> 8);
  }
}

/** Mixes float32 values, without rounding of the weight. */
export function mixFloats(target: usize, other: usize, bytes: usize, weight: f32): void {
  const own = f32x4.splat(weight);
  const rest = f32x4.splat(1 - weight);
  const end = target + bytes;
  for (; end - target >= 16; target += 16, other += 16) {
    v128.store(target, f32x4.add(f32x4.mul(v128.load(target), own), f32x4.mul(v128.load(other), rest)));
  }
  for (; target < end; target += 4, other += 4) {
    store<f32>(target, load<f32>(target) * weight + load<f32>(other) * (1 - weight));
  }
}

@inline function addScaled(target: usize, words: v128, weight: v128): void {
  v128.store(target, f32x4.add(v128.load(target), f32x4.mul(f32x4.convert_i32x4_u(words), weight)));
}

/** Adds bytes, times `weight`, to the float32 sums at `target`. Reads and changes up to 15 values past the end. */
export function addWeighted(target: usize, source: usize, bytes: usize, weight: f32): void {
  const weights = f32x4.splat(weight);
  for (const end = source + bytes; source < end; source += 16, target += 64) {
    const values = v128.load(source);
    const low = i16x8.extend_low_i8x16_u(values);
    const high = i16x8.extend_high_i8x16_u(values);
    addScaled(target, i32x4.extend_low_i16x8_u(low), weights);
    addScaled(target + 16, i32x4.extend_high_i16x8_u(low), weights);
    addScaled(target + 32, i32x4.extend_low_i16x8_u(high), weights);
    addScaled(target + 48, i32x4.extend_high_i16x8_u(high), weights);
  }
}

/** Truncates four sums to bytes, then blends: own + (sum - own) * part, truncated as in Pillow's Image.blend. */
@inline function blendedWords(words: v128, sums: usize, part: v128): v128 {
  const own = f32x4.convert_i32x4_u(words);
  const sum = f32x4.min(f32x4.splat(255), f32x4.floor(f32x4.max(f32x4.splat(0), v128.load(sums))));
  return i32x4.trunc_sat_f32x4_s(f32x4.add(own, f32x4.mul(f32x4.sub(sum, own), part)));
}

/** Replaces bytes by their blend with the float32 sums at `sums`. Reads and changes up to 15 values past the end. */
export function blendSums(target: usize, sums: usize, bytes: usize, part: f32): void {
  const parts = f32x4.splat(part);
  for (const end = target + bytes; target < end; target += 16, sums += 64) {
    const values = v128.load(target);
    const low = i16x8.extend_low_i8x16_u(values);
    const high = i16x8.extend_high_i8x16_u(values);
    const a = blendedWords(i32x4.extend_low_i16x8_u(low), sums, parts);
    const b = blendedWords(i32x4.extend_high_i16x8_u(low), sums + 16, parts);
    const c = blendedWords(i32x4.extend_low_i16x8_u(high), sums + 32, parts);
    const d = blendedWords(i32x4.extend_high_i16x8_u(high), sums + 48, parts);
    v128.store(target, i8x16.narrow_i16x8_u(i16x8.narrow_i32x4_s(a, b), i16x8.narrow_i32x4_s(c, d)));
  }
}

/** Copies `rows` rows of `bytes` bytes. Rows are `pitch` bytes apart in source and target. */
export function copyRows(target: usize, source: usize, pitch: usize, rows: i32, bytes: usize): void {
  for (; rows > 0; rows--, target += pitch, source += pitch) {
    let at: usize = 0;
    for (; bytes - at >= 16; at += 16) v128.store(target + at, v128.load(source + at));
    for (; at < bytes; at++) store<u8>(target + at, load<u8>(source + at));
  }
}
