/**
 * The coefficients of a resize along one axis. With an antialiased filter they are those of Pillow's `Image.resize` and torchvision's
 * `antialias=True`: if the image shrinks, the filter is as many times wider. It is cut off at the edges of the source and normalized to
 * a sum of 1 (Pillow, libImaging/Resample.c, precompute_coeffs). filters.ts lists the filters.
 */
import { cubic, FILTERS, type Filter } from './filters.js';

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
  /** Default: bilinear. */
  readonly filter?: Filter | undefined;
}

/** The source pixels from `lo` to `hi - 1`. */
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
  readonly filter: Filter;
}

function filtersOf({ source, output, first, boxStart = 0, boxLength = source, filter = 'bilinear' }: Axis): Filters {
  const scale = boxLength / output;
  const { halfWidth } = FILTERS[filter];
  return { boxStart, first, scale, support: halfWidth * Math.max(scale, 1), source, filter };
}

/** The center of the filter of pixel `i` of the result. */
function centre({ boxStart, first, scale }: Filters, i: number): number {
  return boxStart + (first + i + 0.5) * scale;
}

/** The first source pixel whose center is inside the filter of pixel `i`. */
function firstTap(filters: Filters, i: number): number {
  switch (filters.filter) {
    case 'nearest':
    case 'nearest-exact':
      return nearestPixel(filters, i);
    case 'bilinear-aliased':
      return Math.min(filters.source - 1, Math.floor(aliasedPosition(filters, i)));
    case 'bicubic-aliased':
      return clamp(Math.floor(aliasedPosition(filters, i)) - 1, filters.source);
    default:
      return Math.max(0, Math.floor(centre(filters, i) - filters.support + 0.5));
  }
}

/** The pixel after the last one whose center is inside the filter of pixel `i`. */
function endOfTaps(filters: Filters, i: number): number {
  switch (filters.filter) {
    case 'nearest':
    case 'nearest-exact':
      return nearestPixel(filters, i) + 1;
    case 'bilinear-aliased':
      return clamp(Math.floor(aliasedPosition(filters, i)) + 1, filters.source) + 1;
    case 'bicubic-aliased':
      return clamp(Math.floor(aliasedPosition(filters, i)) + 2, filters.source) + 1;
    case 'bilinear':
      // A pixel right at the edge of the filter has no weight.
      return Math.min(filters.source, Math.ceil(centre(filters, i) + filters.support - 0.5));
    default:
      return Math.min(filters.source, Math.floor(centre(filters, i) + filters.support + 0.5));
  }
}

/** The source pixel of pixel `i`, in float32 as in PyTorch. */
function nearestPixel({ filter, first, scale, source }: Filters, i: number): number {
  const at = filter === 'nearest' ? first + i : first + i + 0.5;
  return Math.min(source - 1, Math.floor(Math.fround(at * Math.fround(scale))));
}

/** The position of pixel `i` between the centers of source pixels, as in PyTorch with align_corners=False. */
function aliasedPosition(filters: Filters, i: number): number {
  const at = centre(filters, i) - 0.5;
  return filters.filter === 'bilinear-aliased' ? Math.max(0, at) : at;
}

function clamp(pixel: number, source: number): number {
  return Math.max(0, Math.min(source - 1, pixel));
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
  const narrow = isNarrow(filters);
  const most = maxTaps(filters, axis.count);
  const taps = narrow ? most : most + (most & 1);
  const bits = narrow ? NARROW_BITS : wideBits(filters);
  const starts = new Int32Array(axis.count);
  const weights = new Int16Array(axis.count * taps);
  const exact = new Float64Array(taps);
  for (let i = 0; i < axis.count; i++) {
    const target = axis.flip ? axis.count - 1 - i : i;
    const start = Math.max(lo, Math.min(firstTap(filters, i), hi - taps));
    starts[target] = start - lo;
    fillWeights(exact, filters, i, start, hi - start, 1 << bits);
    if (narrow) quantizeNarrow(exact, weights, target * taps, 1 << bits);
    else quantizeWide(exact, weights, target * taps);
  }
  return { lo, hi, taps, bits, starts, weights };
}

/** Like {@link axisTaps}, with the exact weights, which add up to 1. */
export function axisWeights(axis: Axis): {
  readonly lo: number;
  readonly hi: number;
  readonly taps: number;
  readonly starts: Int32Array;
  readonly weights: Float64Array;
} {
  const { lo, hi } = sourceRange(axis);
  const filters = filtersOf(axis);
  const taps = Math.min(maxTaps(filters, axis.count), hi - lo);
  const starts = new Int32Array(axis.count);
  const weights = new Float64Array(axis.count * taps);
  const exact = new Float64Array(taps);
  for (let i = 0; i < axis.count; i++) {
    const target = axis.flip ? axis.count - 1 - i : i;
    // Pixels before the first one of a filter have no weight.
    const first = firstTap(filters, i);
    const start = Math.max(lo, Math.min(first, hi - taps));
    fillWeights(exact, filters, i, start, hi - start, 1);
    starts[target] = start - lo;
    weights.set(exact, target * taps);
  }
  return { lo, hi, taps, starts, weights };
}

/** Whether a filter has at most 5 taps and no negative weights. */
function isNarrow({ filter, support }: Filters): boolean {
  switch (filter) {
    case 'nearest':
    case 'nearest-exact':
      return true;
    case 'bilinear':
      return support <= NARROW_SUPPORT;
    case 'box':
    case 'hamming':
      return support <= 2;
    default:
      return false;
  }
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
 * The largest number of bits for which weights fit 16 bits. The largest weight of a triangle is less than 2 / support:
 * the center is at least support / 2 away from both edges, so the filter keeps at least three quarters of its area,
 * which is `support`. The weights of other filters are less than 1.5 / scale, even if an edge cuts off everything on
 * one side of the center.
 */
function wideBits({ filter, support, scale }: Filters): number {
  const isAliased = filter === 'bilinear-aliased' || filter === 'bicubic-aliased';
  const inverse = filter === 'bilinear' ? support / 2 : (isAliased ? 1 : Math.max(scale, 1)) / 1.5;
  return Math.min(MAX_BITS, Math.floor(Math.log2(32767 * inverse)));
}

/** Computes the weights of pixel `i` for the source pixels from `start` on, of which `inside` exist, and scales them to the given sum. */
function fillWeights(
  exact: Float64Array,
  filters: Filters,
  i: number,
  start: number,
  inside: number,
  sum: number,
): void {
  const { filter, support } = filters;
  const { weight, halfWidth } = FILTERS[filter];
  if (weight === undefined) fillFixed(exact, filters, i, start);
  else {
    const distance = start + 0.5 - centre(filters, i);
    const stretch = support / halfWidth;
    for (let k = 0; k < exact.length; k++) exact[k] = k < inside ? weight((distance + k) / stretch) : 0;
  }
  let total = 0;
  for (let k = 0; k < exact.length; k++) total += exact[k]!;
  const factor = sum / total;
  for (let k = 0; k < exact.length; k++) exact[k]! *= factor;
}

/** The weights of a filter that takes a fixed number of pixels. Pixels beyond an edge count as the pixel at the edge. */
function fillFixed(exact: Float64Array, filters: Filters, i: number, start: number): void {
  exact.fill(0);
  const { filter, source } = filters;
  if (filter === 'nearest' || filter === 'nearest-exact') {
    exact[nearestPixel(filters, i) - start] = 1;
    return;
  }
  const at = aliasedPosition(filters, i);
  const [first, last] = filter === 'bilinear-aliased' ? [0, 1] : [-1, 2];
  for (let offset = first; offset <= last; offset++) {
    const pixel = Math.floor(at) + offset;
    const weight = filter === 'bilinear-aliased' ? 1 - Math.abs(pixel - at) : cubic(pixel - at, -0.75);
    exact[clamp(pixel, source) - start]! += weight;
  }
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
