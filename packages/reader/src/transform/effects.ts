/** What becomes of pixels that are there, in bytes of RGB: no crop and no resize. */
import type { Values } from '../codec/png-values.js';
import type { Scratch } from '../codec/scratch.js';
import type { EffectKernels, Picture } from '../kernels/effects.js';
import type { Size } from './crops.js';
import type { BlurEffect } from './steps/blur.js';
import type { FactorEffect, HueEffect } from './steps/colours.js';
import type { EraseEffect } from './steps/erasing.js';
import type { RotateEffect } from './steps/rotation.js';

/** All parameters are drawn. Formulas are those of torchvision.transforms.v2.functional on uint8 tensors. */
export type Effect =
  | RotateEffect
  | BlurEffect
  | FactorEffect<'brightness'>
  | FactorEffect<'contrast'>
  | FactorEffect<'saturation'>
  | HueEffect
  | EraseEffect;

/** What effects run on. */
export interface EffectTools {
  readonly effects: EffectKernels;
  readonly scratch: Scratch;
}

/** How one kind of effect is run: on a picture where it is, or from one into another. */
export type EffectEntry<E> =
  | { readonly change: (picture: Picture, effect: E, tools: EffectTools) => void }
  | {
      /** The size of what it makes. */
      readonly makes: (picture: Size, effect: E) => Size;
      readonly run: (from: Picture, to: Picture, effect: E, tools: EffectTools) => void;
      /** What becomes of a mask; without it, it stays as it is. */
      readonly mask?: (mask: Values, effect: E) => Values;
    };

export type Rgb = readonly [number, number, number];

export function rgb(value: number | Rgb): Rgb {
  return typeof value === 'number' ? [value, value, value] : value;
}
