// Weighted sums of bytes, 8 lanes at a time. Narrow and wide sums both become 16 bits per lane: the rounded result in the high byte,
// and the fraction in the low byte.

/** The initial value of a narrow sum: one half, in units of 1/256. */
@inline export function narrowHalf(): v128 {
  return i16x8.splat(128);
}

/** Adds bytes (widened to 16 bits) times a weight in units of 1/256. The weights of a sum total 256, so it fits 16 bits. */
@inline export function addNarrow(sums: v128, bytes: v128, weight: v128): v128 {
  return i16x8.add(sums, i16x8.mul(bytes, weight));
}

/** Adds pairs of bytes (widened to 16 bits) times a pair of weights to 4 wide sums of 32 bits. */
@inline export function addWide(sums: v128, pairs: v128, weights: v128): v128 {
  return i32x4.add(sums, i32x4.dot_i16x8_s(pairs, weights));
}

/** Converts 8 wide sums, which have `shift` + 8 fraction bits, to the form of narrow sums. */
@inline export function fromWide(low: v128, high: v128, shift: i32): v128 {
  return i16x8.narrow_i32x4_u(i32x4.shr_s(low, shift), i32x4.shr_s(high, shift));
}
