/** Steps that depend on all values of an image or on neighbors: autocontrast, equalize, sharpness. */
import { total } from '@shardtool/base';
import type { EffectEntry } from '../../effects.js';
import { effectWithChance, HALF_THE_TIME } from '../../parameters/chance.js';
import { NOT_NEGATIVE } from '../../parameters/kinds.js';
import { needed } from '../../parameters/parameter.js';
import { step } from '../step.js';

export interface AutocontrastEffect {
  readonly kind: 'autocontrast';
}
export interface EqualizeEffect {
  readonly kind: 'equalize';
}
/** A factor of 0 smooths, 1 changes nothing, 2 sharpens. */
export interface SharpnessEffect {
  readonly kind: 'sharpness';
  readonly factor: number;
}

export const randomAutocontrast = step(
  'randomAutocontrast',
  {
    help: 'Stretches the values of each channel to the range 0 to 255.',
    like: 'RandomAutocontrast',
    tolerance: 'within 1 level',
    parameters: { p: HALF_THE_TIME },
  },
  effectWithChance(() => ({ kind: 'autocontrast' })),
);

export const randomEqualize = step(
  'randomEqualize',
  {
    help: 'Equalizes the histogram of each channel.',
    like: 'RandomEqualize',
    tolerance: 'equal',
    parameters: { p: HALF_THE_TIME },
  },
  effectWithChance(() => ({ kind: 'equalize' })),
);

export const randomAdjustSharpness = step(
  'randomAdjustSharpness',
  {
    help: 'Smooths or sharpens the image.',
    like: 'RandomAdjustSharpness',
    tolerance: 'within 1 level',
    parameters: {
      sharpnessFactor: needed(NOT_NEGATIVE, '0 smooths, 1 changes nothing, 2 sharpens.'),
      p: HALF_THE_TIME,
    },
  },
  effectWithChance<{ readonly sharpnessFactor: number }>(({ sharpnessFactor }) => ({
    kind: 'sharpness',
    factor: sharpnessFactor,
  })),
);

const HISTOGRAM_BYTES = 3 * 256 * 4;

export const autocontrast: EffectEntry<AutocontrastEffect> = {
  change: (picture, _effect, { effects, scratch }) => {
    const counts = effects.histogram(picture, scratch.allocate(HISTOGRAM_BYTES));
    effects.lookUpBytes(picture, tablesOf(counts, stretched), scratch.allocate(768));
  },
};
export const equalize: EffectEntry<EqualizeEffect> = {
  change: (picture, _effect, { effects, scratch }) => {
    const counts = effects.histogram(picture, scratch.allocate(HISTOGRAM_BYTES));
    effects.lookUpBytes(picture, tablesOf(counts, equalized), scratch.allocate(768));
  },
};
export const sharpness: EffectEntry<SharpnessEffect> = {
  makes: (picture) => picture,
  run: (from, to, { factor }, { effects }) => effects.sharpen(from, to, factor),
};

/** Makes a table [3, 256] from the histograms of the three channels. */
function tablesOf(counts: Uint32Array, make: (counts: Uint32Array, table: Uint8Array) => void): Uint8Array {
  const tables = Uint8Array.from({ length: 768 }, (_, i) => i & 255);
  for (let at = 0; at < 768; at += 256) make(counts.subarray(at, at + 256), tables.subarray(at, at + 256));
  return tables;
}

/** v2.functional `autocontrast_image`, in float32 as there. */
function stretched(counts: Uint32Array, table: Uint8Array): void {
  const low = counts.findIndex((count) => count > 0);
  const high = counts.findLastIndex((count) => count > 0);
  if (low === high) return;
  const scale = Math.fround((high - low) * Math.fround(1 / 255));
  for (let value = low; value <= high; value++) table[value] = Math.min(255, Math.fround((value - low) / scale));
}

/** v2.functional `equalize_image`, which is Pillow's ImageOps.equalize. */
function equalized(counts: Uint32Array, table: Uint8Array): void {
  const pixels = total(counts);
  const step = Math.floor((pixels - counts[counts.findLastIndex((count) => count > 0)]!) / 255);
  if (step === 0) return;
  let sum = Math.floor(step / 2);
  for (let value = 0; value < 256; value++) {
    table[value] = Math.min(255, Math.floor(sum / step));
    sum += counts[value]!;
  }
}
