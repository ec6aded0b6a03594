/** Steps that change hue, saturation and value, and that add noise. */
import { HSV_SCRATCH_BYTES, NOISE_SCRATCH_BYTES } from '../../../kernels/effects.js';
import type { EffectEntry } from '../../effects.js';
import { ALWAYS, applies } from '../../parameters/chance.js';
import { NOT_NEGATIVE, NUMBER, PART_OR_0 } from '../../parameters/kinds.js';
import { defaulted } from '../../parameters/parameter.js';
import { uniform } from '../../random.js';
import { step } from '../step.js';

/** `hue` is a fraction of the hue circle that is added; saturation and value are multiplied. */
export interface HsvEffect {
  readonly kind: 'hsv';
  readonly hue: number;
  readonly saturation: number;
  readonly value: number;
}

/** Normally distributed noise, added to bytes. */
export interface NoiseEffect {
  readonly kind: 'noise';
  /** Mean and deviation, 1 is 255 levels. */
  readonly mean: number;
  readonly sigma: number;
  /** The key of the random numbers. */
  readonly key: readonly [number, number];
}

/** Draws one random number for p, then one for each gain. */
export const hsvJitter = step(
  'hsvJitter',
  {
    help: "Changes hue, saturation and value by random amounts, with OpenCV's 8-bit HSV (YOLO).",
    like: null,
    tolerance: 'within 1 level of OpenCV',
    parameters: {
      hgain: defaulted(
        PART_OR_0,
        0.015,
        'Largest shift of the hue in each direction, as a fraction of the hue circle.',
      ),
      sgain: defaulted(PART_OR_0, 0.7, 'Largest change of the saturation: its factor is up to this far from 1.'),
      vgain: defaulted(PART_OR_0, 0.4, 'Largest change of the value: its factor is up to this far from 1.'),
      p: ALWAYS,
    },
  },
  {
    isEffect: true,
    draw: ({ hgain, sgain, vgain, p }, canvas, random) => {
      if (!applies(p, random)) return;
      const [hue, saturation, value] = [hgain, sgain, vgain].map((gain) => uniform([-gain, gain], random));
      canvas.applyEffects([{ kind: 'hsv', hue: hue!, saturation: 1 + saturation!, value: 1 + value! }]);
    },
  },
);

/** Draws one random number for p, then two for the key of the noise. */
export const gaussianNoise = step(
  'gaussianNoise',
  {
    help: 'Adds normally distributed noise to each value.',
    like: 'GaussianNoise',
    tolerance: 'the same distribution, up to 4.3 deviations',
    parameters: {
      mean: defaulted(NUMBER, 0, 'Mean of the noise; 1 is the whole range of values.'),
      sigma: defaulted(NOT_NEGATIVE, 0.1, 'Standard deviation of the noise; 1 is the whole range of values.'),
      p: ALWAYS,
    },
  },
  {
    isEffect: true,
    draw: ({ mean, sigma, p }, canvas, random) => {
      if (!applies(p, random)) return;
      const key = [random.next() * 2 ** 32, random.next() * 2 ** 32] as const;
      canvas.applyEffects([{ kind: 'noise', mean, sigma, key }]);
    },
  },
);

export const hsv: EffectEntry<HsvEffect> = {
  change: (picture, effect, { effects, scratch }) => {
    effects.lookUpHsv(picture, hsvTables(effect), scratch.allocate(HSV_SCRATCH_BYTES));
  },
};

/**
 * New hue, saturation and value of each byte, 256 of each. A hue goes round the circle before it is rounded down, as in
 * Ultralytics' RandomHSV.
 */
export function hsvTables({ hue, saturation, value }: Omit<HsvEffect, 'kind'>): Uint8Array {
  const tables = new Uint8Array(768);
  for (let i = 0; i < 256; i++) {
    tables[i] = (((i + hue * 180) % 180) + 180) % 180;
    tables[256 + i] = Math.max(0, Math.min(255, i * saturation));
    tables[512 + i] = Math.max(0, Math.min(255, i * value));
  }
  return tables;
}

export const noise: EffectEntry<NoiseEffect> = {
  change: (picture, { mean, sigma, key }, { effects, scratch }) => {
    effects.addNoise(picture, amountsOf(mean, sigma), key, scratch.allocate(NOISE_SCRATCH_BYTES));
  },
};

let last: { readonly mean: number; readonly sigma: number; readonly amounts: Int16Array } | undefined;

/**
 * The amount that the noise adds to a value, for each value of 16 random bits. Only the last table is kept, because
 * consecutive images usually have the same noise.
 */
function amountsOf(mean: number, sigma: number): Int16Array {
  if (last?.mean !== mean || last.sigma !== sigma) {
    // Amounts of more than 255 levels have the same effect as 256.
    const amount = (quantile: number) => Math.max(-256, Math.min(256, Math.trunc(255 * (mean + sigma * quantile))));
    last = { mean, sigma, amounts: Int16Array.from(quantiles(), amount) };
  }
  return last.amounts;
}

let made: Float32Array | undefined;

/** 65,536 quantiles of the normal distribution, in the middle of equal shares: the integral of its density, by the midpoint rule. */
function quantiles(): Float32Array {
  if (made !== undefined) return made;
  const step = 1 / 32_768;
  made = new Float32Array(65_536);
  let at = 0;
  let sum = 0;
  for (let x = -6; at < made.length; x += step) {
    const middle = x + step / 2;
    sum += (step * Math.exp(-0.5 * middle * middle)) / Math.sqrt(2 * Math.PI);
    while (at < made.length && sum >= (at + 0.5) / 65_536) made[at++] = middle;
  }
  return made;
}
