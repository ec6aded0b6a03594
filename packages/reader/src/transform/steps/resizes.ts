import { LARGEST_SIDE, resizedSize } from '../crops.js';
import { SIDE, SIZE } from './kinds.js';
import { needed, optional, step } from './step.js';

export const resize = step(
  'resize',
  {
    help: 'Resizes, antialiased, with bilinear weights.',
    like: 'Resize',
    tolerance: 'equal to Pillow where JPEGs are decoded whole',
    parameters: {
      size: needed({ ...SIZE, takes: 'the shorter side, or [height, width]' }, 'Of the result.'),
      maxSize: optional(SIDE, 'The most that the longer side may become, where size is one number.'),
    },
  },
  {
    check: ({ size, maxSize }) =>
      maxSize === undefined || (typeof size === 'number' && maxSize > size)
        ? undefined
        : { path: 'maxSize', message: 'it must be more than size, and size one number' },
    draw: ({ size, maxSize }, canvas) => canvas.resize(resizedSize(canvas.size, size, maxSize)),
    shape: ({ size, maxSize }, before) =>
      typeof size === 'number' ? before && resizedSize(before, size, maxSize) : { height: size[0], width: size[1] },
    largest: ({ size }) => ({ height: typeof size === 'number' ? size : size[0], width: LARGEST_SIDE }),
    resizesTo: ({ size, maxSize }) => [size, maxSize ?? size].flat(),
  },
);
