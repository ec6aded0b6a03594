/** The filters of a resize: those of Pillow (libImaging/Resample.c), and those of PyTorch's `interpolate` without antialiasing. */

/**
 * How pixels are interpolated. `nearest` and `nearest-exact` take one pixel, as PyTorch does; `nearest-exact` equals Pillow's NEAREST, except
 * for positions exactly between two pixels. The filters of Pillow become wider if an image shrinks. `bilinear-aliased` and `bicubic-aliased` do not: they are PyTorch's
 * `interpolate` with antialias=False.
 */
export type Filter =
  | 'nearest'
  | 'nearest-exact'
  | 'box'
  | 'bilinear'
  | 'hamming'
  | 'bicubic'
  | 'lanczos'
  | 'bilinear-aliased'
  | 'bicubic-aliased';

interface FilterShape {
  /** Half width of the filter in source pixels, if the image does not shrink. */
  readonly halfWidth: number;
  /** The weight at a distance from the center. Omitted for filters that take a fixed number of pixels. */
  readonly weight?: (distance: number) => number;
}

/** The shape of each filter. The weight of `bilinear` is computed in taps.ts. */
export const FILTERS: Readonly<Record<Filter, FilterShape>> = {
  nearest: { halfWidth: 0.5 },
  'nearest-exact': { halfWidth: 0.5 },
  box: { halfWidth: 0.5, weight: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) },
  bilinear: { halfWidth: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  hamming: { halfWidth: 1, weight: hamming },
  bicubic: { halfWidth: 2, weight: (x) => cubic(x, -0.5) },
  lanczos: { halfWidth: 3, weight: (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0) },
  'bilinear-aliased': { halfWidth: 1 },
  'bicubic-aliased': { halfWidth: 2 },
};

function hamming(distance: number): number {
  const x = Math.abs(distance);
  if (x === 0) return 1;
  return x >= 1 ? 0 : sinc(x) * (0.54 + 0.46 * Math.cos(x * Math.PI));
}

/** The cubic convolution of Keys with parameter `a`: -0.5 in Pillow, -0.75 in PyTorch without antialiasing. */
export function cubic(distance: number, a: number): number {
  const x = Math.abs(distance);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI);
}
