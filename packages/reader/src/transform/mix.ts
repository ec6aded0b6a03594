import { OptionError } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';
import type { Rect } from '../codec/codec.js';
import type { Size } from './crops.js';
import type { Random } from './random.js';

/** `alpha` is the parameter of the Beta distribution that the weight is drawn from; default 1, which is uniform. */
export interface MixInput {
  readonly name: 'mixup' | 'cutmix';
  readonly alpha?: number;
}

/** Made where it is asked for: decode workers, which only draw, start faster without zod. */
const mixSchema = () =>
  z.strictObject({ name: z.enum(['mixup', 'cutmix']), alpha: z.number().positive().max(1000).default(1) });
type Mix = z.output<ReturnType<typeof mixSchema>>;
/** Of several, each batch gets one. */
export type Mixes = readonly Mix[];

/** Fills in the defaults. Throws {@link OptionError}. */
export function checkMix(input: MixInput | readonly MixInput[] | undefined): Mixes {
  if (input === undefined) return [];
  return (Array.isArray(input) ? input : [input]).map((one) =>
    parseShape(mixSchema(), one, ({ where, what }) => {
      const message = `The loader's option mix is not right (${where || 'it'} ${what}); it is { name: 'mixup' or 'cutmix', alpha }, or a list of those.`;
      return new OptionError({}, message);
    }),
  );
}

/** How a batch is mixed: image i keeps `weight` of itself, the rest comes from image i - 1, the first one's from the last. */
export interface DrawnMix {
  readonly name: 'mixup' | 'cutmix';
  /** Of each row's own label; the one before has 1 - weight. */
  readonly weight: number;
  /** What cutmix takes from the image before. Null for mixup. */
  readonly rect: Rect | null;
}

/** Draws one number to choose where there are several, then the weight, then for cutmix two for the middle of the rectangle. */
export function drawMix(mixes: Mixes, { width, height }: Size, random: Random): DrawnMix | null {
  if (mixes.length === 0) return null;
  const { name, alpha } = mixes.length === 1 ? mixes[0]! : mixes[Math.floor(random.next() * mixes.length)]!;
  const weight = beta(alpha, random);
  if (name === 'mixup') return { name, weight, rect: null };
  // v2.CutMix `make_params`: a rectangle of the part that is left, cut off at the edges.
  const middleX = Math.floor(random.next() * width);
  const middleY = Math.floor(random.next() * height);
  const half = 0.5 * Math.sqrt(1 - weight);
  const [halfWidth, halfHeight] = [Math.trunc(half * width), Math.trunc(half * height)];
  const [x, y] = [Math.max(0, middleX - halfWidth), Math.max(0, middleY - halfHeight)];
  const rect = {
    x,
    y,
    width: Math.min(width, middleX + halfWidth) - x,
    height: Math.min(height, middleY + halfHeight) - y,
  };
  return { name, weight: 1 - (rect.width * rect.height) / (width * height), rect };
}

/** A number with the distribution Beta(alpha, alpha). */
function beta(alpha: number, random: Random): number {
  if (alpha === 1) return random.next();
  if (alpha > 1) {
    const a = gamma(alpha, random);
    return a / (a + gamma(alpha, random));
  }
  // A gamma variable below 1 is one of shape + 1 times a power of a uniform number.
  const a = { base: gamma(alpha + 1, random), uniform: positive(random) };
  const b = { base: gamma(alpha + 1, random), uniform: positive(random) };
  const [first, second] = [a, b].map(({ base, uniform }) => base * uniform ** (1 / alpha)) as [number, number];
  if (first + second > 0) return first / (first + second);
  // With a small alpha both powers are too small for a float64. Their ratio, from the logarithms, is not.
  const ratio = (b.base / a.base) * Math.exp((Math.log(b.uniform) - Math.log(a.uniform)) / alpha);
  return 1 / (1 + ratio);
}

/** Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. The shape is 1 or more. */
function gamma(shape: number, random: Random): number {
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (let attempt = 0; attempt < 1000; attempt++) {
    const normal = Math.sqrt(-2 * Math.log(positive(random))) * Math.cos(2 * Math.PI * random.next());
    const v = (1 + c * normal) ** 3;
    if (v > 0 && Math.log(positive(random)) < 0.5 * normal * normal + d - d * v + d * Math.log(v)) return d * v;
  }
  return d;
}

/** Above 0, up to 1. */
function positive(random: Random): number {
  return 1 - random.next();
}
