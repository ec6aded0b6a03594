import { SampleDecodeError } from '@shardtool/base';
import { asSize, centerCropRect, type Padding, randomCropRect, randomResizedCropRect } from '../crops.js';
import { BYTE, PADDING, RANGE, SIZE, SWITCH } from './kinds.js';
import { MASK_FILL } from './mask-fill.js';
import { defaulted, needed, step } from './step.js';

const SIZE_HELP = 'Of the result: a number for a square, or [height, width].';

export const centerCrop = step(
  'centerCrop',
  {
    help: 'Takes the middle. What of it lies outside the image is black.',
    like: 'CenterCrop',
    tolerance: 'equal',
    parameters: { size: needed(SIZE, SIZE_HELP) },
  },
  {
    draw: ({ size }, canvas) => canvas.crop(centerCropRect(canvas.size, asSize(size)), 0),
    shape: ({ size }) => asSize(size),
    largest: ({ size }) => asSize(size),
  },
);

export const randomCrop = step(
  'randomCrop',
  {
    help: 'Takes a part at a random place.',
    like: 'RandomCrop',
    tolerance: 'equal',
    parameters: {
      size: needed(SIZE, SIZE_HELP),
      padding: defaulted(PADDING, 0, 'Pixels around the image before.'),
      padIfNeeded: defaulted(SWITCH, false, 'Pads images that are smaller than the crop; else they are bad samples.'),
      fill: defaulted(BYTE, 0, 'The value of the padding.'),
      maskFill: MASK_FILL,
    },
  },
  {
    draw: ({ size, padding, padIfNeeded, fill, maskFill }, canvas, random) => {
      const image = canvas.size;
      const crop = asSize(size);
      const rect = randomCropRect(image, crop, asPadding(padding), padIfNeeded, random);
      if (rect !== null) {
        canvas.crop(rect, fill, maskFill);
        return;
      }
      throw new SampleDecodeError(
        {},
        `it is ${image.width}x${image.height} pixels where randomCrop takes ${crop.width}x${crop.height}: resize before, or ` +
          'give randomCrop padIfNeeded',
      );
    },
    shape: ({ size }) => asSize(size),
    largest: ({ size }) => asSize(size),
  },
);

export const randomResizedCrop = step(
  'randomResizedCrop',
  {
    help: 'Takes a part of random area and shape, and resizes it.',
    like: 'RandomResizedCrop',
    tolerance: 'within 2 levels of Pillow if JPEGs are decoded whole (see below)',
    parameters: {
      size: needed(SIZE, SIZE_HELP),
      scale: defaulted(RANGE, [0.08, 1], 'Parts of the area.'),
      ratio: defaulted(RANGE, [3 / 4, 4 / 3], 'Width over height.'),
    },
  },
  {
    draw: ({ size, scale, ratio }, canvas, random) => {
      canvas.crop(randomResizedCropRect(canvas.size, scale, ratio, random), 0);
      canvas.resize(asSize(size));
    },
    shape: ({ size }) => asSize(size),
    largest: ({ size }) => asSize(size),
    resizesTo: ({ size }) => [size].flat(),
  },
);

export function asPadding(padding: number | readonly number[]): Padding {
  if (typeof padding === 'number') return { left: padding, top: padding, right: padding, bottom: padding };
  const [left, top, right = left, bottom = top] = padding as readonly [number, number, number?, number?];
  return { left, top, right, bottom };
}
