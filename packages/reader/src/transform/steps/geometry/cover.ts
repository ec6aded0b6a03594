import { asSize, centerCropRect, coveringSize, randomCropRect } from '../../crops.js';
import { checkResizing, drawFilter, RESIZING, widestFilter } from '../../parameters/interpolation.js';
import { CROP_PART, SIZE } from '../../parameters/kinds.js';
import { defaulted, needed } from '../../parameters/parameter.js';
import { step } from '../step.js';

const NO_PADDING = { left: 0, top: 0, right: 0, bottom: 0 };

export const cover = step(
  'cover',
  {
    help: 'Resizes the image to the smallest size that covers `size`, keeping its aspect ratio, and crops it to `size`.',
    like: null,
    tolerance: 'as resize and CenterCrop or RandomCrop',
    parameters: {
      size: needed(SIZE, 'Size of the result.'),
      crop: defaulted(CROP_PART, 'center', 'Position of the crop.'),
      ...RESIZING,
    },
  },
  {
    check: checkResizing,
    widestFilter,
    draw: (step, canvas, random) => {
      const { size, crop } = step;
      const target = asSize(size);
      const covering = coveringSize(canvas.size, target);
      canvas.resize(covering, drawFilter(step, random));
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
