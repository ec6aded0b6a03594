import type { Size } from '../codec/codec.js';
/** The geometry of rotations, as in torchvision v2 for tensors. */

/** An affine map [a, b, c, d, e, f]: (x, y) becomes (a x + b y + c, d x + e y + f). */
export type Affine = readonly [number, number, number, number, number, number];

/**
 * Maps a pixel of the image after a counter-clockwise rotation to its position in the source. Both are relative to the center of
 * the image, and so is the center of rotation [x, y] (v2.functional `_get_inverse_affine_matrix` with the angle -degrees).
 */
export function rotationOf(degrees: number, [x, y]: readonly [number, number]): Affine {
  const [sin, cos] = sinCos(degrees);
  return [cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y];
}

/** Sine and cosine. Exact at multiples of 90 degrees, where torchvision rotates without interpolation. */
function sinCos(degrees: number): readonly [number, number] {
  const turned = ((degrees % 360) + 360) % 360;
  if (turned % 90 === 0) return [[0, 1, 0, -1][turned / 90]!, [1, 0, -1, 0][turned / 90]!];
  const radians = (turned * Math.PI) / 180;
  return [Math.sin(radians), Math.cos(radians)];
}

/**
 * The size that holds the whole rotated image (v2.functional `_compute_affine_output_size_tensor`, in float32 as there). A quarter
 * turn about the center swaps the sides; computed from the corners, an odd side would become one pixel longer.
 */
export function rotatedSize([a, b, c, d, e, f]: Affine, { width, height }: Size): Size {
  if (a === 0 && c === 0 && f === 0) return { width: height, height: width };
  const corners = [-0.5, 0.5].flatMap((x) => [-0.5, 0.5].map((y) => [x * width, y * height] as const));
  return {
    width: span(corners.map(([x, y]) => a * x + b * y + c + width / 2)),
    height: span(corners.map(([x, y]) => d * x + e * y + f + height / 2)),
  };
}

/**
 * Number of pixels from the smallest to the largest value. An excess of less than 1/10,000 beyond a pixel's edge is
 * ignored.
 */
function span(values: readonly number[]): number {
  const cut = (value: number) => Math.fround(Math.trunc(Math.fround(Math.fround(value) * 1e4)) * 1e-4);
  return Math.ceil(cut(Math.max(...values))) - Math.floor(cut(Math.min(...values)));
}
