import type { Size } from '../codec/codec.js';
import type { Scratch } from '../codec/scratch.js';
/** Effects: changes of RGB bytes that are neither crops nor resizes. */
import type { Values } from '../codec/wide/png-values.js';
import type { EffectKernels, Picture } from '../kernels/effects.js';
import type { MixChainsEffect } from './steps/containers/mix-chains.js';
import type { ElasticEffect } from './steps/geometry/elastic.js';
import type { PerspectiveEffect } from './steps/geometry/perspective.js';
import type { RotateEffect } from './steps/geometry/rotation.js';
import type { BlurEffect, PillowBlurEffect } from './steps/pixels/blur.js';
import type { ContrastEffect, FactorEffect, HueEffect, SaturationEffect } from './steps/pixels/colours.js';
import type { AutocontrastEffect, EqualizeEffect, SharpnessEffect } from './steps/pixels/contrast-steps.js';
import type { EraseEffect } from './steps/pixels/erasing.js';
import type { JpegEffect } from './steps/pixels/jpeg.js';
import type { HsvEffect, NoiseEffect } from './steps/pixels/noise.js';
import type {
  InvertEffect,
  PermuteChannelsEffect,
  PosterizeEffect,
  SolarizeAddEffect,
  SolarizeEffect,
} from './steps/pixels/point-operations.js';

/** An effect with its random parameters drawn. The formulas are those of torchvision.transforms.v2.functional on uint8 tensors. */
export type Effect =
  | AutocontrastEffect
  | ElasticEffect
  | EqualizeEffect
  | HsvEffect
  | InvertEffect
  | MixChainsEffect
  | PermuteChannelsEffect
  | NoiseEffect
  | JpegEffect
  | PerspectiveEffect
  | PillowBlurEffect
  | PosterizeEffect
  | SharpnessEffect
  | SolarizeAddEffect
  | SolarizeEffect
  | RotateEffect
  | BlurEffect
  | FactorEffect<'brightness'>
  | ContrastEffect
  | SaturationEffect
  | HueEffect
  | EraseEffect;

/** The kernels and the memory that effects use. */
export interface EffectTools {
  readonly effects: EffectKernels;
  readonly scratch: Scratch;
  /** Applies effects to a picture, for effects that contain others. `spare` is the memory of a picture of the same size. */
  readonly runEffects: RunEffects;
}

/** Applies effects in order. The result may be at another address; `picture` is overwritten. */
export type RunEffects = (
  picture: Picture,
  effects: readonly Effect[],
  tools: Pick<EffectTools, 'effects' | 'scratch'>,
  spare?: Picture | null,
) => Picture;

/** The implementation of one kind of effect. It either changes a picture in place, or writes a new one. */
export type EffectEntry<E> =
  | { readonly change: (picture: Picture, effect: E, tools: EffectTools) => void }
  | {
      /** The size of the new picture. */
      readonly makes: (picture: Size, effect: E) => Size;
      readonly run: (from: Picture, to: Picture, effect: E, tools: EffectTools) => void;
      /** Applies the effect to a mask. If omitted, masks do not change. */
      readonly mask?: (mask: Values, effect: E) => Values;
    };

export type Rgb = readonly [number, number, number];

export function rgb(value: number | Rgb): Rgb {
  return typeof value === 'number' ? [value, value, value] : value;
}
