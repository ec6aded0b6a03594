import { OptionError, optionName, sentence, withCodeNames } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';
import type { Size } from '../codec/codec.js';
import { LARGEST_SIDE } from '../transform/crops.js';
import { bucketSizes, checkedSizes, type SizeRule } from './sizes.js';

/** [height, width] in pixels, as in the steps of a transform. */
type SizePair = readonly [number, number];

/** The part that is kept of an image that was resized to cover its size. */
export type BucketCrop = 'center' | 'random';

/**
 * Sizes of batches: a rule, or a list of sizes. Sizes of a rule are excluded if fewer than a thousandth of the samples
 * are nearest to them. A list is used as it is.
 */
export type BucketsInput =
  | readonly SizePair[]
  | { readonly sizes: readonly SizePair[]; readonly crop?: BucketCrop }
  | {
      /** Maximum number of pixels of a size. */
      readonly area: number;
      /** Both sides are multiples of it. Default: 64. */
      readonly step?: number;
      /** Maximum ratio of the longer side to the shorter one. Default: 2. */
      readonly maxRatio?: number;
      /** Default: `center`. */
      readonly crop?: BucketCrop;
    };

/** Checked options: the possible sizes, and whether rare ones are excluded. */
export interface Buckets {
  readonly sizes: readonly Size[];
  readonly isComputed: boolean;
  readonly crop: BucketCrop;
}

const side = z.number().int().min(1).max(LARGEST_SIDE);
const pairs = z.array(z.tuple([side, side]).readonly()).readonly();
const crop = z.enum(['center', 'random']).default('center');
const rule = z.strictObject({
  area: z
    .number()
    .int()
    .min(1)
    .max(LARGEST_SIDE ** 2),
  step: side.default(64),
  maxRatio: z.number().min(1).max(LARGEST_SIDE).default(2),
  crop,
});
const list = z.strictObject({ sizes: pairs, crop });

const TAKES = withCodeNames(
  'it is { area, step, maxRatio, crop }, { sizes, crop } or a list of sizes, each [height, width] in pixels; crop is ' +
    '"center" or "random"',
);

/** Throws {@link OptionError} with the allowed values. */
export function checkBuckets(input: unknown): Buckets {
  if (Array.isArray(input)) return ofList({ sizes: parse(pairs, input), crop: 'center' });
  if (typeof input === 'object' && input !== null && 'sizes' in input) return ofList(parse(list, input));
  const { crop: part, ...sizes } = parse(rule, input);
  const made = bucketSizes(sizes satisfies SizeRule);
  const long = made.find(({ width, height }) => Math.max(width, height) > LARGEST_SIDE);
  if (long === undefined) return { sizes: made, isComputed: true, crop: part };
  throw wrong(`the size [${long.height}, ${long.width}] has a side of more than ${LARGEST_SIDE} pixels`);
}

function ofList({ sizes, crop: part }: z.output<typeof list>): Buckets {
  const given = sizes.map(([height, width]) => ({ width, height }));
  return { sizes: checkedSizes(given), isComputed: false, crop: part };
}

function parse<Shape extends z.ZodType>(shape: Shape, input: unknown): z.output<Shape> {
  return parseShape(shape, input, ({ where, what }) => wrong(`${where || 'it'} ${what}`));
}

function wrong(what: string): OptionError {
  return new OptionError(
    {},
    sentence`The loader's option ${optionName('aspectBuckets')} is invalid (${what}); ${TAKES}.`,
  );
}
