import type { Size } from '../../codec/codec.js';
/** The probability with which a step applies. */
import type { Canvas } from '../canvas.js';
import type { Effect } from '../effects.js';
import type { Random } from '../random.js';
import { PROBABILITY } from './kinds.js';
import { defaulted } from './parameter.js';

/** The parameter `p` of a step that applies to every image unless the user sets it. */
export const ALWAYS = defaulted(PROBABILITY, 1, 'Probability that the step applies.');

/** The parameter `p` of steps that apply to half of all images by default. */
export const HALF_THE_TIME = defaulted(PROBABILITY, 0.5, 'Probability that the step applies.');

/**
 * Draws whether a step applies. Takes one random number, but none if `p` is 1: lists without `p` must draw the same
 * numbers as in earlier versions.
 */
export function applies(p: number, random: Random): boolean {
  return p === 1 || random.next() < p;
}

/** The functions of a step that applies one effect with probability `p`. Draws one random number. */
export function effectWithChance<S>(effectOf: (step: S) => Effect) {
  return {
    isEffect: true,
    draw: (step: S & { readonly p: number }, canvas: Canvas, random: Random): void => {
      if (random.next() < step.p) canvas.applyEffects([effectOf(step)]);
    },
  } as const;
}

/** The common size of all results of a step that makes images of size `after`, or leaves them at size `before`. */
export function shapeWithChance(p: number, before: Size | null, after: Size | null): Size | null {
  if (p === 1) return after;
  const isSame = after !== null && before?.width === after.width && before.height === after.height;
  return isSame || p === 0 ? before : null;
}
