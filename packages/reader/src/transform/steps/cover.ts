import { asSize, centerCropRect, coveringSize, randomCropRect } from '../crops.js';
import { CROP_PART, SIZE } from './kinds.js';
import { defaulted, needed, step } from './step.js';

const NO_PADDING = { left: 0, top: 0, right: 0, bottom: 0 };

export const cover = step(
  'cover',
  {
    help: 'Resizes until the image covers the size, sides alike, and takes that much of it.',
    like: null,
    tolerance: 'as resize and CenterCrop or RandomCrop',
    parameters: {
      size: needed(SIZE, 'Of the result: a number for a square, or [height, width].'),
      crop: defaulted(CROP_PART, 'center', 'Which part is taken.'),
    },
  },
  {
    draw: ({ size, crop }, canvas, random) => {
      const target = asSize(size);
      const covering = coveringSize(canvas.size, target);
      canvas.resize(covering);
      const part =
        crop === 'center'
          ? centerCropRect(covering, target)
          : randomCropRect(covering, target, NO_PADDING, false, random)!;
      canvas.crop(part, 0);
    },
    shape: ({ size }) => asSize(size),
    largest: ({ size }) => asSize(size),
    resizesTo: ({ size }) => [size].flat(),
  },
);
