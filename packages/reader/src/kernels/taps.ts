/**
 * The coefficients of an antialiased resize along one axis, as Pillow's `Image.resize(..., BILINEAR)` and torchvision's
 * `antialias=True` have them: a triangle filter whose half width is one source pixel, or the reduction where that is more,
 * cut off at the edges of the source and normalised to a sum of 1 (Pillow, libImaging/Resample.c, precompute_coeffs).
 */

/**
 * One axis of a resize. Pixel `first + i` of the full resize from `source` to `output` pixels is pixel `i` of the result,
 * for i < count; `flip` then turns the result round. A crop before the resize is a smaller `source` (filters end at the
 * crop); a crop after the resize is a smaller `count` (they do not).
 */
export interface Axis {
  /** Pixels of the source, 1 or more. */
  readonly source: number;
  /** Pixels of the full resize, 1 or more. */
  readonly output: number;
  /** The part that is kept. */
  readonly first: number;
  readonly count: number;
  readonly flip: boolean;
  /**
   * The stretch of the source that is resized, where it is not whole pixels (a crop of a picture that was decoded at a
   * half of its size): from `boxStart` on, `boxLength`. All of the source without.
   */
  readonly boxStart?: number;
  readonly boxLength?: number;
}

/** Source pixels from `lo` up to but without `hi`. */
export interface SourceRange {
  readonly lo: number;
  readonly hi: number;
}

/**
 * Which source pixels make up each pixel of the result: `taps` of them from `starts[i]` (counted from `lo`) on, times
 * `weights[i * taps ...]`, which sum to `1 << bits`. In filters of more than 5 taps their number is even, and where the
 * range is shorter than that, the last tap lies outside and has no weight.
 */
export interface AxisTaps extends SourceRange {
  readonly taps: number;
  readonly bits: number;
  readonly starts: Int32Array;
  readonly weights: Int16Array;
}

/**
 * Up to this half width a filter has at most 5 taps, and weights in 1/256 are used, whose sums fit 16 bits. It depends on
 * the scale alone, so that a window is exactly a part of the full resize.
 */
const NARROW_SUPPORT = 2.5;
export const NARROW_BITS = 8;
/** As in Pillow: 255 << 22 fits 32 bits. */
const MOST_BITS = 22;

/** Where the filters of an axis lie, in source pixels. */
interface Filters {
  readonly boxStart: number;
  readonly first: number;
  readonly scale: number;
  /** Half the width of a filter. */
  readonly support: number;
  readonly source: number;
}

function filtersOf({ source, output, first, boxStart = 0, boxLength = source }: Axis): Filters {
  const scale = boxLength / output;
  return { boxStart, first, scale, support: Math.max(scale, 1), source };
}

/** The middle of the filter of pixel `i` of the result. */
function centre({ boxStart, first, scale }: Filters, i: number): number {
  return boxStart + (first + i + 0.5) * scale;
}

/** The first source pixel whose middle lies inside the filter of pixel `i`. */
function firstTap(filters: Filters, i: number): number {
  return Math.max(0, Math.floor(centre(filters, i) - filters.support + 0.5));
}

/** The pixel after the last one whose middle lies inside the filter of pixel `i`. */
function endOfTaps(filters: Filters, i: number): number {
  return Math.min(filters.source, Math.ceil(centre(filters, i) + filters.support - 0.5));
}

/** The part of the source that the result needs. */
export function sourceRange(axis: Axis): SourceRange {
  const filters = filtersOf(axis);
  return { lo: firstTap(filters, 0), hi: endOfTaps(filters, axis.count - 1) };
}

/** The filters of an axis. */
export function axisTaps(axis: Axis): AxisTaps {
  const { lo, hi } = sourceRange(axis);
  const filters = filtersOf(axis);
  const { support } = filters;
  const narrow = support <= NARROW_SUPPORT;
  const most = mostTaps(filters, axis.count);
  const taps = narrow ? most : most + (most & 1);
  const bits = narrow ? NARROW_BITS : wideBits(support);
  const starts = new Int32Array(axis.count);
  const weights = new Int16Array(axis.count * taps);
  const exact = new Float64Array(taps);
  for (let i = 0; i < axis.count; i++) {
    const place = axis.flip ? axis.count - 1 - i : i;
    const start = Math.max(lo, Math.min(firstTap(filters, i), hi - taps));
    starts[place] = start - lo;
    fillTriangle(exact, start + 0.5 - centre(filters, i), support, hi - start, 1 << bits);
    if (narrow) quantizeNarrow(exact, weights, place * taps, 1 << bits);
    else quantizeWide(exact, weights, place * taps);
  }
  return { lo, hi, taps, bits, starts, weights };
}

/** The same filters for a source whose last pixel comes first, and a result that does. */
export function mirrored(filters: AxisTaps): AxisTaps {
  const { lo, hi, taps, starts, weights } = filters;
  const inside = Math.min(taps, hi - lo);
  const mirroredWeights = new Int16Array(weights.length);
  for (let at = 0; at < weights.length; at += taps) {
    for (let k = 0; k < inside; k++) mirroredWeights[at + k] = weights[at + inside - 1 - k]!;
  }
  return { ...filters, starts: starts.map((start) => hi - lo - inside - start), weights: mirroredWeights };
}

/** The most taps that a pixel of the result has. */
function mostTaps(filters: Filters, count: number): number {
  let most = 1;
  for (let i = 0; i < count; i++) most = Math.max(most, endOfTaps(filters, i) - firstTap(filters, i));
  return most;
}

/**
 * As many bits as 16-bit weights can have. The largest weight is less than 2 / support: the centre is at least support / 2
 * from both edges, so that the filter keeps three quarters or more of its area, which is `support`.
 */
function wideBits(support: number): number {
  return Math.min(MOST_BITS, Math.floor(Math.log2((32767 * support) / 2)));
}

/** A triangle of half width `support` at `distance`, distance + 1, ... from its middle, with the given sum. */
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

/** Rounds down, then gives what is missing to the largest remainders: the smallest error of each weight. */
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

/** Rounds the running sum, so that the errors of neighbours cancel: they add up over thousands of taps otherwise. */
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
