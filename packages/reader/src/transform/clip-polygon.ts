import type { Size } from '../codec/codec.js';
/**
 * Clips a polygon to the image. `ring` holds x and y of each corner in turn. Returns one ring, or none if nothing is left.
 * Algorithm: Sutherland and Hodgman, "Reentrant polygon clipping", 1974. Parts that are connected only outside the image stay
 * joined along its edge.
 */
export function clipped(ring: Float64Array, { width, height }: Size): Float64Array[] {
  let left = ring;
  left = cut(left, 0, 1, 0);
  left = cut(left, 0, -1, width);
  left = cut(left, 1, 1, 0);
  left = cut(left, 1, -1, height);
  return left.length < 6 || (left !== ring && doubleArea(left) === 0) ? [] : [left];
}

/** Twice the area of a polygon. */
function doubleArea(ring: Float64Array): number {
  let twice = 0;
  for (let at = 0; at < ring.length; at += 2) {
    const next = (at + 2) % ring.length;
    twice += ring[at]! * ring[next + 1]! - ring[next]! * ring[at + 1]!;
  }
  return Math.abs(twice);
}

/** The part of a polygon on one side of a line: where `sign` times the coordinate is at least `sign` times `limit`. */
function cut(ring: Float64Array, axis: 0 | 1, sign: 1 | -1, limit: number): Float64Array {
  const isInside = (at: number) => sign * (ring[at + axis]! - limit) >= 0;
  let isWhole = true;
  for (let at = 0; at < ring.length && isWhole; at += 2) isWhole = isInside(at);
  if (isWhole) return ring;
  const kept: number[] = [];
  for (let at = 0; at < ring.length; at += 2) {
    const before = at === 0 ? ring.length - 2 : at - 2;
    if (isInside(at) !== isInside(before)) {
      const part = (limit - ring[before + axis]!) / (ring[at + axis]! - ring[before + axis]!);
      const other = ring[before + 1 - axis]! + part * (ring[at + 1 - axis]! - ring[before + 1 - axis]!);
      kept.push(...(axis === 0 ? [limit, other] : [other, limit]));
    }
    if (isInside(at)) kept.push(ring[at]!, ring[at + 1]!);
  }
  return Float64Array.from(kept);
}
