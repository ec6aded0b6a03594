import { total } from '@shardtool/base';

/** Largest number of bits of the weights: sums of 255 with 6 fraction bits then still fit 32 signed bits. */
const MAX_BITS = 17;

/** One half of a Gaussian filter in integers. */
export interface GaussianWeights {
  /** The center weight, then the weights at distance 1, 2, ..., then a 0 if their number would be odd. */
  readonly weights: Int16Array;
  /** The weights of the whole filter, both halves, add up to 1 << bits. */
  readonly bits: number;
}

/**
 * Makes a Gaussian filter of `size` pixels, which is odd (torchvision.transforms.v2.functional `_get_gaussian_kernel1d`). It uses as
 * many bits as 16-bit weights allow.
 */
export function gaussianWeights(size: number, sigma: number): GaussianWeights {
  const radius = size >> 1;
  const exact = Array.from({ length: radius + 1 }, (_, distance) => Math.exp(-(distance ** 2) / (2 * sigma ** 2)));
  const sum = total(exact) * 2 - exact[0]!;
  // The center weight absorbs the rounding errors of the others, so it may be too large by `radius`.
  const bits = Math.min(MAX_BITS, Math.floor(Math.log2(((32767 - size) * sum) / exact[0]!)));
  const weights = new Int16Array((radius + 2) & ~1);
  let sides = 0;
  for (let distance = 1; distance <= radius; distance++) {
    weights[distance] = Math.round((exact[distance]! / sum) * 2 ** bits);
    sides += 2 * weights[distance]!;
  }
  weights[0] = 2 ** bits - sides;
  return { weights, bits };
}
