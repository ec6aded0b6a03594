import { LARGEST_SIDE } from '../../crops.js';
import { HALF_THE_TIME } from '../../parameters/chance.js';
import { COLOUR, FROM_ONE, PADDING } from '../../parameters/kinds.js';
import { MASK_FILL, PADDING_MODE, refuseMirrored } from '../../parameters/mask-fill.js';
import { defaulted, needed } from '../../parameters/parameter.js';
import { uniform } from '../../random.js';
import { step } from '../step.js';
import { asPadding } from './crops.js';

export const pad = step(
  'pad',
  {
    help: 'Adds pixels around the image.',
    like: 'Pad',
    tolerance: 'equal',
    parameters: {
      padding: needed(PADDING, 'Number of pixels on each side.'),
      fill: defaulted(COLOUR, 0, 'Value of the added pixels.'),
      maskFill: MASK_FILL,
      paddingMode: PADDING_MODE,
    },
  },
  {
    refusesAnnotations: ({ paddingMode }, option) => refuseMirrored(paddingMode, option),
    draw: ({ padding, fill, maskFill, paddingMode }, canvas) =>
      canvas.pad(asPadding(padding), fill, maskFill, paddingMode === 'constant' ? undefined : paddingMode),
    shape: ({ padding }, before) => {
      const { left, top, right, bottom } = asPadding(padding);
      return before && { width: left + before.width + right, height: top + before.height + bottom };
    },
    largest: () => ({ width: LARGEST_SIDE, height: LARGEST_SIDE }),
  },
);

/** Draws one random number for p, then one for the size, then two for the position, x first (v2.RandomZoomOut `make_params`). */
export const randomZoomOut = step(
  'randomZoomOut',
  {
    help: 'Places the image at a random position on a larger canvas.',
    like: 'RandomZoomOut',
    tolerance: 'equal',
    parameters: {
      fill: defaulted(COLOUR, 0, 'Value of the pixels around the image.'),
      maskFill: MASK_FILL,
      sideRange: defaulted(FROM_ONE, [1, 4], 'Side length of the canvas as a multiple of the side of the image.'),
      p: HALF_THE_TIME,
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
