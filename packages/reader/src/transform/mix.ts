import { OptionError } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';
import type { Rect } from '../codec/codec.js';
import type { Size } from './crops.js';
import { beta } from './distributions.js';
import { drawOne, integerBelow, type Random } from './random.js';

/** One way to mix the images of a batch. `alpha` is the parameter of the Beta distribution of the weight. Default: 1, uniform. */
export interface MixInput {
  readonly name: 'mixup' | 'cutmix';
  readonly alpha?: number;
}

/** A function, so that decode workers, which only draw, start faster without zod. */
const mixSchema = () =>
  z.strictObject({ name: z.enum(['mixup', 'cutmix']), alpha: z.number().positive().max(1000).default(1) });
type Mix = z.output<ReturnType<typeof mixSchema>>;
/** The mixes of a loader. If there are several, each batch uses one of them. */
export type Mixes = readonly Mix[];

/** Checks the option `mix` and fills in defaults. Throws {@link OptionError}. */
export function checkMix(input: MixInput | readonly MixInput[] | undefined): Mixes {
  if (input === undefined) return [];
  return (Array.isArray(input) ? input : [input]).map((mix) =>
    parseShape(mixSchema(), mix, ({ where, what }) => {
      const message = `The loader's option mix is invalid (${where || 'it'} ${what}). Expected { name: 'mixup' or 'cutmix', alpha }, or a list of these.`;
      return new OptionError({}, message);
    }),
  );
}

/** How a batch is mixed. Image i keeps `weight` of itself and gets the rest from image i - 1; the first image from the last. */
export interface DrawnMix {
  readonly name: 'mixup' | 'cutmix';
  /** Weight of each row's own label. The label of the row before has 1 - weight. */
  readonly weight: number;
  /** The rectangle that cutmix takes from the image before. Null for mixup. */
  readonly rect: Rect | null;
}

/** Draws how to mix a batch. Order of random numbers: the choice, if there are several mixes; the weight; for cutmix the center of the rectangle. */
export function drawMix(mixes: Mixes, { width, height }: Size, random: Random): DrawnMix | null {
  if (mixes.length === 0) return null;
  const { name, alpha } = mixes.length === 1 ? mixes[0]! : drawOne(mixes, random);
  const weight = beta(alpha, random);
  if (name === 'mixup') return { name, weight, rect: null };
  // v2.CutMix `make_params`: a rectangle with the remaining share of the area, clipped at the edges.
  const centerX = integerBelow(width, random);
  const centerY = integerBelow(height, random);
  const half = 0.5 * Math.sqrt(1 - weight);
  const [halfWidth, halfHeight] = [Math.trunc(half * width), Math.trunc(half * height)];
  const [x, y] = [Math.max(0, centerX - halfWidth), Math.max(0, centerY - halfHeight)];
  const rect = {
    x,
    y,
    width: Math.min(width, centerX + halfWidth) - x,
    height: Math.min(height, centerY + halfHeight) - y,
  };
  return { name, weight: 1 - (rect.width * rect.height) / (width * height), rect };
}
