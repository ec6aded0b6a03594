/**
 * The coefficients of an antialiased resize along one axis, as in Pillow's `Image.resize(..., BILINEAR)` and torchvision's
 * `antialias=True`: a triangle filter whose half width is one source pixel, or the reduction factor if that is larger. The filter is
 * cut off at the edges of the source and normalized to a sum of 1 (Pillow, libImaging/Resample.c, precompute_coeffs).
 */

/**
 * One axis of a resize. Pixel `i` of the result is pixel `first + i` of the full resize from `source` to `output` pixels, for
 * i < count. Then `flip` reverses the result. A crop before the resize is a smaller `source`: filters end at its edges. A crop after
 * the resize is a smaller `count`: filters extend beyond it.
 */
export interface Axis {
  /** Number of pixels of the source, at least 1. */
  readonly source: number;
  /** Number of pixels of the full resize, at least 1. */
  readonly output: number;
  /** First pixel of the full resize that is kept. */
  readonly first: number;
  /** Number of pixels that are kept. */
  readonly count: number;
  readonly flip: boolean;
  /**
   * Start of the part of the source that is resized, if it is not whole pixels, as in a crop of a picture that was decoded at half
   * its size. Default: 0.
   */
  readonly boxStart?: number;
  /** Length of the part of the source that is resized. Default: `source`. */
  readonly boxLength?: number;
}

/** The source pixels from `lo` up to, but without, `hi`. */
export interface SourceRange {
  readonly lo: number;
  readonly hi: number;
}

/**
 * The source pixels of each pixel of the result: `taps` pixels from `starts[i]` (relative to `lo`) on, times the weights from
 * `weights[i * taps]` on, which add up to `1 << bits`. Filters of more than 5 taps have an even number of taps. If the range is
 * shorter than that, the last tap is outside the range and has no weight.
 */
export interface AxisTaps extends SourceRange {
  readonly taps: number;
  readonly bits: number;
  readonly starts: Int32Array;
  readonly weights: Int16Array;
}

/**
 * Largest half width of a narrow filter. A narrow filter has at most 5 taps, and weights in units of 1/256, so that sums fit 16 bits.
 * The choice depends only on the scale, so a window is exactly a part of the full resize.
 */
const NARROW_SUPPORT = 2.5;
export const NARROW_BITS = 8;
/** Largest number of bits of the weights, as in Pillow: 255 << 22 fits 32 bits. */
const MAX_BITS = 22;

/** The positions of the filters of an axis, in source pixels. */
interface Filters {
  readonly boxStart: number;
  readonly first: number;
  readonly scale: number;
  /** Half width of a filter. */
  readonly support: number;
  readonly source: number;
}

function filtersOf({ source, output, first, boxStart = 0, boxLength = source }: Axis): Filters {
  const scale = boxLength / output;
  return { boxStart, first, scale, support: Math.max(scale, 1), source };
}

/** The center of the filter of pixel `i` of the result. */
function centre({ boxStart, first, scale }: Filters, i: number): number {
  return boxStart + (first + i + 0.5) * scale;
}

/** The first source pixel whose center is inside the filter of pixel `i`. */
function firstTap(filters: Filters, i: number): number {
  return Math.max(0, Math.floor(centre(filters, i) - filters.support + 0.5));
}

/** The pixel after the last one whose center is inside the filter of pixel `i`. */
function endOfTaps(filters: Filters, i: number): number {
  return Math.min(filters.source, Math.ceil(centre(filters, i) + filters.support - 0.5));
}

/** The part of the source that the result needs. */
export function sourceRange(axis: Axis): SourceRange {
  const filters = filtersOf(axis);
  return { lo: firstTap(filters, 0), hi: endOfTaps(filters, axis.count - 1) };
}

/** Computes the filters of an axis. */
export function axisTaps(axis: Axis): AxisTaps {
  const { lo, hi } = sourceRange(axis);
  const filters = filtersOf(axis);
  const { support } = filters;
  const narrow = support <= NARROW_SUPPORT;
  const most = maxTaps(filters, axis.count);
  const taps = narrow ? most : most + (most & 1);
  const bits = narrow ? NARROW_BITS : wideBits(support);
  const starts = new Int32Array(axis.count);
  const weights = new Int16Array(axis.count * taps);
  const exact = new Float64Array(taps);
  for (let i = 0; i < axis.count; i++) {
    const target = axis.flip ? axis.count - 1 - i : i;
    const start = Math.max(lo, Math.min(firstTap(filters, i), hi - taps));
    starts[target] = start - lo;
    fillTriangle(exact, start + 0.5 - centre(filters, i), support, hi - start, 1 << bits);
    if (narrow) quantizeNarrow(exact, weights, target * taps, 1 << bits);
    else quantizeWide(exact, weights, target * taps);
  }
  return { lo, hi, taps, bits, starts, weights };
}

/** The same filters for a reversed source and a reversed result. */
export function mirrored(filters: AxisTaps): AxisTaps {
  const { lo, hi, taps, starts, weights } = filters;
  const inside = Math.min(taps, hi - lo);
  const mirroredWeights = new Int16Array(weights.length);
  for (let at = 0; at < weights.length; at += taps) {
    for (let k = 0; k < inside; k++) mirroredWeights[at + k] = weights[at + inside - 1 - k]!;
  }
  return { ...filters, starts: starts.map((start) => hi - lo - inside - start), weights: mirroredWeights };
}

/** The largest number of taps of any pixel of the result. */
function maxTaps(filters: Filters, count: number): number {
  let most = 1;
  for (let i = 0; i < count; i++) most = Math.max(most, endOfTaps(filters, i) - firstTap(filters, i));
  return most;
}

/**
 * The largest number of bits for which weights fit 16 bits. The largest weight is less than 2 / support: the center is at least
 * support / 2 away from both edges, so the filter keeps at least three quarters of its area, which is `support`.
 */
function wideBits(support: number): number {
  return Math.min(MAX_BITS, Math.floor(Math.log2((32767 * support) / 2)));
}

/** Samples a triangle of half width `support` at `distance`, distance + 1, ... from its center, and scales it to the given sum. */
function fillTriangle(exact: Float64Array, distance: number, support: number, inside: number, sum: number): void {
  let total = 0;
  for (let k = 0; k < exact.length; k++) {
    const weight = k < inside ? Math.max(0, 1 - Math.abs(distance + k) / support) : 0;
    exact[k] = weight;
    total += weight;
  }
  const factor = sum / total;
  for (let k = 0; k < exact.length; k++) exact[k]! *= factor;
}

/** Rounds down, then adds 1 to the weights with the largest remainders until the sum is right. This minimizes the error of each weight. */
function quantizeNarrow(exact: Float64Array, weights: Int16Array, at: number, sum: number): void {
  let missing = sum;
  for (let k = 0; k < exact.length; k++) {
    const weight = Math.floor(exact[k]!);
    weights[at + k] = weight;
    exact[k]! -= weight;
    missing -= weight;
  }
  for (; missing > 0; missing--) {
    let largest = 0;
    for (let k = 1; k < exact.length; k++) if (exact[k]! > exact[largest]!) largest = k;
    exact[largest] = -1;
    weights[at + largest]! += 1;
  }
}

/** Rounds the running sum, so that the errors of neighbours cancel. Otherwise they would add up over thousands of taps. */
function quantizeWide(exact: Float64Array, weights: Int16Array, at: number): void {
  let running = 0;
  let given = 0;
  for (let k = 0; k < exact.length; k++) {
    running += exact[k]!;
    const weight = Math.round(running) - given;
    weights[at + k] = weight;
    given += weight;
  }
}
