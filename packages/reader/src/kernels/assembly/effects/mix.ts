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

/** Copies `rows` rows of `bytes` bytes. Rows are `pitch` bytes apart in source and target. */
export function copyRows(target: usize, source: usize, pitch: usize, rows: i32, bytes: usize): void {
  for (; rows > 0; rows--, target += pitch, source += pitch) {
    let at: usize = 0;
    for (; bytes - at >= 16; at += 16) v128.store(target + at, v128.load(source + at));
    for (; at < bytes; at++) store<u8>(target + at, load<u8>(source + at));
  }
}
