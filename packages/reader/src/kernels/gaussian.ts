/**
 * One side of a Gaussian filter of `size` (odd) pixels: the weight of the middle, then those at distance 1, 2, ... The whole
 * filter sums to 1 (torchvision.transforms.v2.functional `_get_gaussian_kernel1d`).
 */
export function gaussianWeights(size: number, sigma: number): Float32Array {
  const radius = size >> 1;
  const exact = Array.from({ length: radius + 1 }, (_, distance) => Math.exp(-(distance ** 2) / (2 * sigma ** 2)));
  const total = exact.reduce((sum, weight) => sum + weight) * 2 - exact[0]!;
  return Float32Array.from(exact, (weight) => weight / total);
}
