import type { Rect } from '../../codec/codec.js';
import { roundHalfEven, type Size } from '../crops.js';
import { type EffectEntry, type Rgb, rgb } from '../effects.js';
import { HALF_THE_TIME } from '../parameters/chance.js';
import { ERASED, PARTS, RANGE } from '../parameters/kinds.js';
import { defaulted } from '../parameters/parameter.js';
import { integerBelow, type Random, uniform } from '../random.js';
import { step } from './step.js';

export interface EraseEffect {
  readonly kind: 'erase';
  readonly rect: Rect;
  readonly value: Rgb;
}

/** Erases bytes if it comes before normalize and toDtype, and finished values if it comes after them. */
export const randomErasing = step(
  'randomErasing',
  {
    help: 'Overwrites a rectangle of random position and shape.',
    like: 'RandomErasing',
    tolerance: 'equal',
    parameters: {
      p: HALF_THE_TIME,
      scale: defaulted(PARTS, [0.02, 0.33], 'Area of the rectangle as a fraction of the image area.'),
      ratio: defaulted(RANGE, [0.3, 3.3], 'Aspect ratio of the rectangle, height / width.'),
      value: defaulted(ERASED, 0, 'New value: 0 to 255 before normalize and toDtype. "random" works only after them.'),
    },
  },
  {
    isEffect: true,
    refusesBytes: ({ value }) => {
      const values = [value].flat();
      if (values.every((item) => Number.isInteger(item) && (item as number) >= 0 && (item as number) <= 255)) return;
      return (
        `has the value ${JSON.stringify(value)}, which does not fit in a byte: put the step after normalize or toDtype, or choose ` +
        'integers from 0 to 255'
      );
    },
    draw: (step, canvas, random) => {
      const rect = drawErasing(step, canvas.size, random);
      if (rect !== null) canvas.applyEffects([{ kind: 'erase', rect, value: rgb(step.value as number | Rgb) }]);
    },
  },
);

/** The parameters of {@link randomErasing} that determine the rectangle. */
interface Erasing {
  readonly p: number;
  readonly scale: readonly [number, number];
  readonly ratio: readonly [number, number];
}

/**
 * Draws the rectangle to erase: one random number for p; then, until a rectangle fits, two for its area and aspect ratio; then
 * two for its position (v2.RandomErasing `make_params`). Null if nothing is erased.
 */
export function drawErasing({ p, scale, ratio }: Erasing, image: Size, random: Random): Rect | null {
  if (random.next() >= p) return null;
  const logRatio = [Math.log(ratio[0]), Math.log(ratio[1])] as const;
  for (let attempt = 0; attempt < 10; attempt++) {
    const area = image.width * image.height * uniform(scale, random);
    const aspect = Math.exp(uniform(logRatio, random));
    const height = roundHalfEven(Math.sqrt(area * aspect));
    const width = roundHalfEven(Math.sqrt(area / aspect));
    if (height >= image.height || width >= image.width) continue;
    const y = integerBelow(image.height - height + 1, random);
    const x = integerBelow(image.width - width + 1, random);
    return { x, y, width, height };
  }
  return null;
}

export const erase: EffectEntry<EraseEffect> = {
  change: (picture, { rect, value }, { effects, scratch }) => {
    const pitch = picture.width * 3;
    const pattern = scratch.allocate(64);
    effects.writePattern(Uint8Array.from(value), pattern);
    effects.fillRows(picture.address + rect.y * pitch + rect.x * 3, pitch, rect.height, rect.width * 3, pattern);
  },
};
