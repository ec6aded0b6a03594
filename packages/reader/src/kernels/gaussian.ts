/** Of 255 with 6 bits behind the point, so many more bits still fit a signed sum of 32. */
const MOST_BITS = 17;

/** One side of a Gaussian filter in whole numbers. */
export interface GaussianWeights {
  /** The middle's, then those at distance 1, 2, ...; and a 0 where that makes their number even. */
  readonly weights: Int16Array;
  /** All of the filter, both sides, sums to 1 << bits. */
  readonly bits: number;
}

/**
 * A Gaussian filter of `size` (odd) pixels (torchvision.transforms.v2.functional `_get_gaussian_kernel1d`), with as many
 * bits as 16-bit weights can have.
 */
export function gaussianWeights(size: number, sigma: number): GaussianWeights {
  const radius = size >> 1;
  const exact = Array.from({ length: radius + 1 }, (_, distance) => Math.exp(-(distance ** 2) / (2 * sigma ** 2)));
  const total = exact.reduce((sum, weight) => sum + weight) * 2 - exact[0]!;
  // What rounding takes from the sides, the middle gets: it may be `radius` more than it should.
  const bits = Math.min(MOST_BITS, Math.floor(Math.log2(((32767 - size) * total) / exact[0]!)));
  const weights = new Int16Array((radius + 2) & ~1);
  let sides = 0;
  for (let distance = 1; distance <= radius; distance++) {
    weights[distance] = Math.round((exact[distance]! / total) * 2 ** bits);
    sides += 2 * weights[distance]!;
  }
  weights[0] = 2 ** bits - sides;
  return { weights, bits };
}
