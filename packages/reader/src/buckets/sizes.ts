import { OptionError, optionName, partitionPoint, type Sentence, sentence } from '@shardtool/base';
import type { Size } from '../codec/codec.js';

/** A rule that makes a list of sizes. */
export interface SizeRule {
  /** Maximum number of pixels of a size. */
  readonly area: number;
  /** Both sides are multiples of it. */
  readonly step: number;
  /** Maximum ratio of the longer side to the shorter one. */
  readonly maxRatio: number;
}

/** The number of a size is stored in one byte. 255 means no size. */
export const MOST_SIZES = 255;
/** Sizes of a computed list are excluded if they have less than this part of all samples. */
const LEAST_PART = 1000;

/**
 * Returns the sizes of a rule, the narrowest first: for each width that is at least the height, the greatest height,
 * and the same with width and height exchanged. (2 ** 20, 64, 4) includes the list of SDXL. Throws {@link OptionError}
 * if no size fits, or too many do.
 */
export function bucketSizes({ area, step, maxRatio }: SizeRule): Size[] {
  const sizes: Size[] = [];
  for (let width = Math.floor(Math.sqrt(area) / step) * step; width > 0; width += step) {
    const height = Math.min(width, Math.floor(area / width / step) * step);
    if (height < step || width > maxRatio * height) break;
    sizes.push({ width, height });
    if (width !== height) sizes.push({ width: height, height: width });
    if (sizes.length > MOST_SIZES) throw new OptionError({}, tooMany(`area ${area} and step ${step} make`));
  }
  if (sizes.length === 0) {
    throw new OptionError(
      {},
      sentence`${optionName('aspectBuckets')}: no size of at most ${area} pixels has sides that are multiples of ${step}: choose a larger area, or a smaller step.`,
    );
  }
  return narrowestFirst(sizes);
}

function tooMany(what: string): Sentence {
  return sentence`${optionName('aspectBuckets')}: ${what} more than ${MOST_SIZES} sizes: choose a larger step, or a smaller maxRatio.`;
}

/**
 * Returns the sizes of a list, the narrowest first. Throws {@link OptionError} if it is empty, or if two sizes have the
 * same ratio.
 */
export function checkedSizes(list: readonly Size[]): Size[] {
  if (list.length === 0)
    throw new OptionError({}, sentence`${optionName('aspectBuckets')}: the list of sizes is empty: give at least one.`);
  if (list.length > MOST_SIZES) throw new OptionError({}, tooMany('the list has'));
  const sizes = narrowestFirst(list);
  for (let i = 1; i < sizes.length; i++) {
    const [one, other] = [sizes[i - 1]!, sizes[i]!];
    if (one.width * other.height !== other.width * one.height) continue;
    throw new OptionError(
      {},
      sentence`${optionName('aspectBuckets')}: ${nameOf(one)} and ${nameOf(other)} have the same aspect ratio, so no sample is nearer to one of them: remove one.`,
    );
  }
  return sizes;
}

function narrowestFirst(sizes: readonly Size[]): Size[] {
  return [...sizes].sort((a, b) => a.width * b.height - b.width * a.height || a.width - b.width);
}

/** Returns a name such as `1024x768`, width first. */
export function nameOf({ width, height }: Size): string {
  return `${width}x${height}`;
}

/**
 * Returns the number of the size with the nearest ratio. The border between two neighbours is the geometric mean of
 * their ratios, and belongs to the wider size. Computed in float64, multiplied from left to right.
 */
export function bucketOf(width: number, height: number, sizes: readonly Size[]): number {
  return partitionPoint(0, sizes.length - 1, (index) => {
    const { width: w, height: h } = sizes[index]!;
    const { width: u, height: k } = sizes[index + 1]!;
    return width * width * h * k >= height * height * w * u;
  });
}

/** Returns the sizes of a computed list that are used: those with at least a thousandth of all samples. */
export function usedSizes(sizes: readonly Size[], perSize: ArrayLike<number>): Size[] {
  let all = 0;
  for (let i = 0; i < sizes.length; i++) all += perSize[i]!;
  return sizes.filter((_, i) => perSize[i]! > 0 && perSize[i]! * LEAST_PART >= all);
}
