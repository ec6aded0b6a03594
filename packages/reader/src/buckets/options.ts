import { OptionError, optionName, sentence } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';
import type { Size } from '../codec/codec.js';
import { LARGEST_SIDE } from '../transform/crops.js';
import { bucketSizes, checkedSizes, type SizeRule } from './sizes.js';

/** [height, width] in pixels, as in the steps of a transform. */
type SizePair = readonly [number, number];

/** Which part of an image that was resized to cover its size is kept. */
export type BucketCrop = 'center' | 'random';

/**
 * Sizes of batches: a rule, or a list of them. Sizes of a rule that fewer than a thousandth of the samples come nearest to are
 * left out; a list is taken as it is.
 */
export type BucketsInput =
  | readonly SizePair[]
  | { readonly sizes: readonly SizePair[]; readonly crop?: BucketCrop }
  | {
      /** No size has more pixels. */
      readonly area: number;
      /** Both sides are multiples of it. Default 64. */
      readonly step?: number;
      /** The longer side is at most so many times the shorter one. Default 2. */
      readonly maxRatio?: number;
      /** Default `center`. */
      readonly crop?: BucketCrop;
    };

/** Checked: the sizes that there can be, and whether rare ones are left out. */
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

const TAKES =
  'it is { area, step, maxRatio, crop }, { sizes, crop } or a list of sizes, each [height, width] in pixels; crop is ' +
  '"center" or "random"';

/** Throws {@link OptionError} that says what is allowed. */
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
