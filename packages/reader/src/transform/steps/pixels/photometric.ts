import type { Effect } from '../../effects.js';
import { FACTOR, HUE, PROBABILITY } from '../../parameters/kinds.js';
import { defaulted } from '../../parameters/parameter.js';
import { type Random, shuffled, uniform } from '../../random.js';
import { step } from '../step.js';

/**
 * Draws, for each of brightness, contrast, saturation and hue, one random number for p and one for its factor if it
 * applies; then one for the position of contrast in the order, one for p of the channels, and two for their order
 * (v2.RandomPhotometricDistort `make_params`).
 */
export const randomPhotometricDistort = step(
  'randomPhotometricDistort',
  {
    help: 'Changes brightness, contrast, saturation and hue and the order of channels, each with probability p (SSD).',
    like: 'RandomPhotometricDistort',
    tolerance: 'each change within 1 level of tensors, all together within 4',
    parameters: {
      brightness: defaulted(FACTOR, [0.875, 1.125], 'Range of the factor.'),
      contrast: defaulted(FACTOR, [0.5, 1.5], 'Range of the factor.'),
      saturation: defaulted(FACTOR, [0.5, 1.5], 'Range of the factor.'),
      hue: defaulted(HUE, [-0.05, 0.05], 'Range of the shift, as a fraction of the hue circle.'),
      p: defaulted(PROBABILITY, 0.5, 'Probability of each change.'),
    },
  },
  {
    isEffect: true,
    draw: (step, canvas, random) => {
      const drawn = (range: readonly [number, number] | null) => drawIf(step.p, range, random);
      const brightness = drawn(step.brightness);
      const contrast = drawn(step.contrast);
      const saturation = drawn(step.saturation);
      const hue = drawn(step.hue);
      const isContrastFirst = random.next() < 0.5;
      const contrasted: Effect[] = contrast === null ? [] : [{ kind: 'contrast', factor: contrast }];
      const effects: Effect[] = [];
      if (brightness !== null) effects.push({ kind: 'brightness', factor: brightness });
      if (isContrastFirst) effects.push(...contrasted);
      if (saturation !== null) effects.push({ kind: 'saturation', factor: saturation });
      if (hue !== null) effects.push({ kind: 'hue', turn: hue });
      if (!isContrastFirst) effects.push(...contrasted);
      if (random.next() < step.p) effects.push({ kind: 'permuteChannels', order: shuffled([0, 1, 2], random) });
      canvas.applyEffects(effects);
    },
  },
);

/** Draws a value from the range with probability p. Null if none is drawn. */
function drawIf(p: number, range: readonly [number, number] | null, random: Random): number | null {
  if (random.next() >= p) return null;
  return range === null ? null : uniform(range, random);
}
