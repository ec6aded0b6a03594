// Weighted sums of bytes, 8 lanes at a time. Narrow and wide sums both end as 16 bits a lane: the result, rounded, in the
// high byte, and what was cut off in the low one.

/** What a narrow sum starts from: one half, in 1/256. */
@inline export function narrowHalf(): v128 {
  return i16x8.splat(128);
}

/** Adds bytes (widened to 16 bits) times a weight in 1/256. The weights of a sum are 256 in total, so 16 bits hold it. */
@inline export function addNarrow(sums: v128, bytes: v128, weight: v128): v128 {
  return i16x8.add(sums, i16x8.mul(bytes, weight));
}

/** Adds pairs of bytes (widened to 16 bits) times a pair of weights to 4 wide sums of 32 bits. */
@inline export function addWide(sums: v128, pairs: v128, weights: v128): v128 {
  return i32x4.add(sums, i32x4.dot_i16x8_s(pairs, weights));
}

/** 8 wide sums, `shift` + 8 bits after the point, brought to the form of the narrow ones. */
@inline export function fromWide(low: v128, high: v128, shift: i32): v128 {
  return i16x8.narrow_i32x4_u(i32x4.shr_s(low, shift), i32x4.shr_s(high, shift));
}
