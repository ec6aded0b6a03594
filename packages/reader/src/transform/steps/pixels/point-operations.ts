/** Steps that change each value by itself: invert, posterize, solarize, permute channels. */
import type { EffectEntry, Rgb } from '../../effects.js';
import { ALWAYS, applies, effectWithChance, HALF_THE_TIME } from '../../parameters/chance.js';
import { BITS, LEVEL } from '../../parameters/kinds.js';
import { needed } from '../../parameters/parameter.js';
import { shuffled } from '../../random.js';
import { step } from '../step.js';

export interface InvertEffect {
  readonly kind: 'invert';
}
/** Keeps the upper `bits` bits. */
export interface PosterizeEffect {
  readonly kind: 'posterize';
  readonly bits: number;
}
/** Inverts the values of at least `threshold`. */
export interface SolarizeEffect {
  readonly kind: 'solarize';
  readonly threshold: number;
}
/** Adds `add` to the values below `threshold`. */
export interface SolarizeAddEffect {
  readonly kind: 'solarizeAdd';
  readonly add: number;
  readonly threshold: number;
}
/** Channel c of the result is channel `order[c]`. */
export interface PermuteChannelsEffect {
  readonly kind: 'permuteChannels';
  readonly order: Rgb;
}

export const randomInvert = step(
  'randomInvert',
  {
    help: 'Inverts the colors of the image.',
    like: 'RandomInvert',
    tolerance: 'equal',
    parameters: { p: HALF_THE_TIME },
  },
  effectWithChance(() => ({ kind: 'invert' })),
);

export const randomPosterize = step(
  'randomPosterize',
  {
    help: 'Keeps only the upper bits of each value.',
    like: 'RandomPosterize',
    tolerance: 'equal',
    parameters: { bits: needed(BITS, 'Number of bits to keep.'), p: HALF_THE_TIME },
  },
  effectWithChance<{ readonly bits: number }>(({ bits }) => ({ kind: 'posterize', bits })),
);

export const randomSolarize = step(
  'randomSolarize',
  {
    help: 'Inverts all values of at least `threshold`.',
    like: 'RandomSolarize',
    tolerance: 'equal',
    parameters: { threshold: needed(LEVEL, 'Smallest value to invert.'), p: HALF_THE_TIME },
  },
  effectWithChance<{ readonly threshold: number }>(({ threshold }) => ({ kind: 'solarize', threshold })),
);

/** Draws two random numbers: the order of the channels. */
export const randomChannelPermutation = step(
  'randomChannelPermutation',
  {
    help: 'Puts the channels in a random order.',
    like: 'RandomChannelPermutation',
    tolerance: 'equal',
    parameters: { p: ALWAYS },
  },
  {
    isEffect: true,
    draw: ({ p }, canvas, random) => {
      if (applies(p, random)) canvas.applyEffects([{ kind: 'permuteChannels', order: shuffled([0, 1, 2], random) }]);
    },
  },
);

export const invert: EffectEntry<InvertEffect> = { change: (picture, _effect, { effects }) => effects.invert(picture) };
export const posterize: EffectEntry<PosterizeEffect> = {
  change: (picture, { bits }, { effects }) => effects.posterize(picture, bits),
};
export const solarize: EffectEntry<SolarizeEffect> = {
  change: (picture, { threshold }, { effects }) => effects.solarize(picture, threshold),
};
export const solarizeAdd: EffectEntry<SolarizeAddEffect> = {
  change: (picture, { add, threshold }, { effects, scratch }) => {
    const table = Uint8Array.from({ length: 768 }, (_, i) => {
      const value = i & 255;
      return value < threshold ? Math.min(255, value + add) : value;
    });
    effects.lookUpBytes(picture, table, scratch.allocate(table.length));
  },
};
export const permuteChannels: EffectEntry<PermuteChannelsEffect> = {
  change: (picture, { order }, { effects }) => effects.permuteChannels(picture, order),
};
