import { OptionError, optionName, partitionPoint, type Sentence, sentence } from '@shardtool/base';
import type { Size } from '../codec/codec.js';

/** Which sizes there are: a list, or a rule that makes one. */
export interface SizeRule {
  /** No size has more pixels. */
  readonly area: number;
  /** Both sides are multiples of it. */
  readonly step: number;
  /** The longer side is at most so many times the shorter one. */
  readonly maxRatio: number;
}

/** The number of a size is kept in one byte; 255 stands for none. */
export const MOST_SIZES = 255;
/** Of a computed list, sizes with less than this part of all samples are left out. */
const LEAST_PART = 1000;

/**
 * The sizes of a rule, the narrowest first: for each width that is at least as long as the height, the greatest height, and
 * the same turned. (2 ** 20, 64, 4) holds the list of SDXL. Throws {@link OptionError} where no size fits, or too many do.
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

/** The sizes of a list, the narrowest first. Throws {@link OptionError} where it is empty, or two have the same shape. */
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
      sentence`${optionName('aspectBuckets')}: ${nameOf(one)} and ${nameOf(other)} have the same shape, so no sample is nearer to one of them: leave out one.`,
    );
  }
  return sizes;
}

function narrowestFirst(sizes: readonly Size[]): Size[] {
  return [...sizes].sort((a, b) => a.width * b.height - b.width * a.height || a.width - b.width);
}

/** `1024x768`, width first, as images are spoken of. */
export function nameOf({ width, height }: Size): string {
  return `${width}x${height}`;
}

/**
 * The number of the size that is nearest in shape. Between two neighbours the border is the geometric mean of their ratios,
 * and a sample on it belongs to the wider one. In float64, multiplied from left to right.
 */
export function bucketOf(width: number, height: number, sizes: readonly Size[]): number {
  return partitionPoint(0, sizes.length - 1, (index) => {
    const { width: w, height: h } = sizes[index]!;
    const { width: u, height: k } = sizes[index + 1]!;
    return width * width * h * k >= height * height * w * u;
  });
}

/** The sizes of a computed list that stay, given how many samples each has: those with a thousandth of all or more. */
export function usedSizes(sizes: readonly Size[], perSize: ArrayLike<number>): Size[] {
  let all = 0;
  for (let i = 0; i < sizes.length; i++) all += perSize[i]!;
  return sizes.filter((_, i) => perSize[i]! > 0 && perSize[i]! * LEAST_PART >= all);
}
