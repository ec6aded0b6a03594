import { LARGEST_SIDE } from '../crops.js';
import { uniform } from '../random.js';
import { asPadding } from './crops.js';
import { COLOUR, FROM_ONE, PADDING, PROBABILITY } from './kinds.js';
import { MASK_FILL } from './mask-fill.js';
import { defaulted, needed, step } from './step.js';

export const pad = step(
  'pad',
  {
    help: 'Adds pixels around the image.',
    like: 'Pad',
    tolerance: 'equal',
    parameters: {
      padding: needed(PADDING, 'How many.'),
      fill: defaulted(COLOUR, 0, 'Their value.'),
      maskFill: MASK_FILL,
    },
  },
  {
    draw: ({ padding, fill, maskFill }, canvas) => canvas.pad(asPadding(padding), fill, maskFill),
    shape: ({ padding }, before) => {
      const { left, top, right, bottom } = asPadding(padding);
      return before && { width: left + before.width + right, height: top + before.height + bottom };
    },
    largest: () => ({ width: LARGEST_SIDE, height: LARGEST_SIDE }),
  },
);

/** Draws one number for p, then one for the size, then two for the place, x first (v2.RandomZoomOut `make_params`). */
export const randomZoomOut = step(
  'randomZoomOut',
  {
    help: 'Puts the image at a random place of a larger one.',
    like: 'RandomZoomOut',
    tolerance: 'equal',
    parameters: {
      fill: defaulted(COLOUR, 0, 'The value of what is around it.'),
      maskFill: MASK_FILL,
      sideRange: defaulted(FROM_ONE, [1, 4], 'How many times as long the sides become.'),
      p: defaulted(PROBABILITY, 0.5, 'How likely it is.'),
    },
  },
  {
    draw: ({ fill, maskFill, sideRange, p }, canvas, random) => {
      if (random.next() >= p) return;
      const { width, height } = canvas.size;
      const factor = uniform(sideRange, random);
      const [right, bottom] = [Math.trunc(width * factor) - width, Math.trunc(height * factor) - height];
      const [left, top] = [Math.trunc(right * random.next()), Math.trunc(bottom * random.next())];
      canvas.pad({ left, top, right: right - left, bottom: bottom - top }, fill, maskFill);
    },
    shape: () => null,
    largest: () => ({ width: LARGEST_SIDE, height: LARGEST_SIDE }),
  },
);
