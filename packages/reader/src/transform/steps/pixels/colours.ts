import type { EffectEntry } from '../../effects.js';
import { ALWAYS, applies, effectWithChance } from '../../parameters/chance.js';
import { FACTOR, HUE, oneOf, PROBABILITY } from '../../parameters/kinds.js';
import { defaulted } from '../../parameters/parameter.js';
import { shuffled, uniform } from '../../random.js';
import { step } from '../step.js';

type Factor = 'brightness' | 'contrast' | 'saturation';
export interface FactorEffect<Kind extends Factor> {
  readonly kind: Kind;
  readonly factor: number;
}
export interface ContrastEffect extends FactorEffect<'contrast'> {
  /** Computes the mean luma as Pillow does. Default: as torchvision does for tensors. */
  readonly isPillow?: boolean;
}
export interface SaturationEffect extends FactorEffect<'saturation'> {
  /** Computes gray as Pillow does. Default: as torchvision does for tensors. */
  readonly isPillow?: boolean;
}
/** A hue shift. `turn` is a fraction of the hue circle, -0.5 to 0.5. */
export interface HueEffect {
  readonly kind: 'hue';
  readonly turn: number;
}

/** Draws three random numbers for the order of the four changes, then one for each change in use (v2.ColorJitter `make_params`). */
export const colorJitter = step(
  'colorJitter',
  {
    help: 'Changes brightness, contrast, saturation and hue by random factors, in random order.',
    like: 'ColorJitter',
    tolerance: 'each change within 1 level of tensors, all four together within 4 (see below)',
    parameters: {
      brightness: defaulted(FACTOR, 0, 'Factor: up to this far from 1, or a range.'),
      contrast: defaulted(FACTOR, 0, 'Factor: up to this far from 1, or a range.'),
      saturation: defaulted(FACTOR, 0, 'Factor: up to this far from 1, or a range.'),
      hue: defaulted(HUE, 0, 'Shift as a fraction of the hue circle: up to this much in each direction, or a range.'),
      p: ALWAYS,
    },
  },
  {
    isEffect: true,
    draw: ({ brightness, contrast, saturation, hue, p }, canvas, random) => {
      if (!applies(p, random)) return;
      const order = shuffled([0, 1, 2, 3], random);
      const changes = [
        brightness && ({ kind: 'brightness', factor: uniform(brightness, random) } as const),
        contrast && ({ kind: 'contrast', factor: uniform(contrast, random) } as const),
        saturation && ({ kind: 'saturation', factor: uniform(saturation, random) } as const),
        hue && ({ kind: 'hue', turn: uniform(hue, random) } as const),
      ];
      canvas.applyEffects(order.map((change) => changes[change]!).filter((change) => change !== null));
    },
  },
);

export const grayscale = step(
  'grayscale',
  {
    help: 'Converts the image to grayscale with three equal channels.',
    like: 'Grayscale',
    tolerance: 'within 1 level',
    parameters: { numOutputChannels: defaulted(oneOf(3), 3, 'Number of channels. Batches always have 3.') },
  },
  { isEffect: true, draw: (_step, canvas) => canvas.applyEffects([{ kind: 'saturation', factor: 0 }]) },
);

export const randomGrayscale = step(
  'randomGrayscale',
  {
    help: 'Converts random images to grayscale.',
    like: 'RandomGrayscale',
    tolerance: 'within 1 level',
    parameters: { p: defaulted(PROBABILITY, 0.1, 'Probability that the step applies.') },
  },
  effectWithChance(() => ({ kind: 'saturation', factor: 0 })),
);

export const brightness: EffectEntry<FactorEffect<'brightness'>> = {
  change: (picture, { factor }, { effects }) => effects.brighten(picture, factor),
};
export const contrast: EffectEntry<ContrastEffect> = {
  change: (picture, { factor, isPillow }, { effects }) => effects.contrast(picture, factor, isPillow),
};
export const saturation: EffectEntry<SaturationEffect> = {
  change: (picture, { factor, isPillow }, { effects }) => effects.saturate(picture, factor, isPillow),
};
export const hue: EffectEntry<HueEffect> = {
  change: (picture, { turn }, { effects }) => effects.shiftHue(picture, turn),
};
