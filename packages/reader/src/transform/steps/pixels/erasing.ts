import type { Rect, Size } from '../../../codec/codec.js';
import { roundHalfEven } from '../../crops.js';
import { type EffectEntry, type Rgb, rgb } from '../../effects.js';
import { HALF_THE_TIME } from '../../parameters/chance.js';
import { COUNT, ERASED, oneOf, PARTS, RANGE } from '../../parameters/kinds.js';
import { defaulted, optional } from '../../parameters/parameter.js';
import { integerBelow, type Random, uniform } from '../../random.js';
import { fits } from '../../values.js';
import { step } from '../step.js';

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
      mode: optional(
        oneOf('const', 'rand', 'pixel'),
        'As in timm: `const` is value, `rand` one random color for each rectangle, `pixel` a random color for each pixel. The last two work only after normalize and toDtype.',
      ),
      minCount: defaulted(COUNT, 1, 'Smallest number of rectangles.'),
      maxCount: optional(
        COUNT,
        'Largest number of rectangles, whose areas are divided by their number. Default: minCount.',
      ),
      value: defaulted(ERASED, 0, 'New value: 0 to 255 before normalize and toDtype. "random" works only after them.'),
    },
  },
  {
    isEffect: true,
    check: ({ mode, value, minCount, maxCount }) => {
      if (maxCount !== undefined && maxCount < minCount)
        return { path: 'maxCount', message: 'must be at least minCount' };
      const isRandom = mode === 'rand' || mode === 'pixel';
      return isRandom && value !== 0
        ? { path: 'value', message: `cannot be combined with the mode ${mode}` }
        : undefined;
    },
    refusesPixels: ({ mode, value }, dtype) => {
      if (mode === 'rand' || mode === 'pixel')
        return `has the mode ${mode}, whose values do not fit in a byte: put the step after normalize or toDtype`;
      const values = [value].flat();
      if (values.every((item) => item !== 'random' && fits(item, dtype))) return;
      const [misfit, remedy] =
        dtype === 'uint8'
          ? ['does not fit in a byte', 'choose integers from 0 to 255']
          : [`${dtype} cannot hold`, 'choose another value'];
      return `has the value ${JSON.stringify(value)}, which ${misfit}: put the step after normalize or toDtype, or ${remedy}`;
    },
    draw: (step, canvas, random) => {
      const value = rgb(step.value as number | Rgb);
      canvas.applyEffects(drawErasing(step, canvas.size, random).map((rect) => ({ kind: 'erase', rect, value })));
    },
  },
);

/** The parameters of {@link randomErasing} that determine the rectangle. */
interface Erasing {
  readonly p: number;
  readonly scale: readonly [number, number];
  readonly ratio: readonly [number, number];
  readonly minCount: number;
  readonly maxCount?: number | undefined;
}

/**
 * Draws the rectangles to erase: one random number for p; one for their number, unless it is set; then for each, until a rectangle fits,
 * two for its area and aspect ratio; then two for its position, and what `drawMore` draws (v2.RandomErasing `make_params`, and timm's
 * RandomErasing).
 */
export function drawErasing(
  step: Erasing,
  image: Size,
  random: Random,
  drawMore: (rect: Rect) => void = () => {},
): Rect[] {
  if (random.next() >= step.p) return [];
  const { minCount, maxCount = minCount } = step;
  const count = minCount === maxCount ? minCount : minCount + integerBelow(maxCount - minCount + 1, random);
  const rects: Rect[] = [];
  for (let i = 0; i < count; i++) {
    const rect = drawRect(step, image, count, random);
    if (rect === null) continue;
    rects.push(rect);
    drawMore(rect);
  }
  return rects;
}

/** Null: no rectangle fits. */
function drawRect({ scale, ratio }: Erasing, image: Size, count: number, random: Random): Rect | null {
  const logRatio = [Math.log(ratio[0]), Math.log(ratio[1])] as const;
  for (let attempt = 0; attempt < 10; attempt++) {
    const area = (image.width * image.height * uniform(scale, random)) / count;
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
