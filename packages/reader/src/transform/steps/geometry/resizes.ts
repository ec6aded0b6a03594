import { asSize, LARGEST_SIDE, resizedSize, roundHalfEven } from '../../crops.js';
import { ALWAYS, applies } from '../../parameters/chance.js';
import { checkResizing, drawFilter, RESIZING, widestFilter } from '../../parameters/interpolation.js';
import { COLOUR, RANGE, SIDE, SIZE, SWITCH } from '../../parameters/kinds.js';
import { MASK_FILL } from '../../parameters/mask-fill.js';
import { defaulted, needed, optional } from '../../parameters/parameter.js';
import { uniform } from '../../random.js';
import { step } from '../step.js';

export const resize = step(
  'resize',
  {
    help: 'Resizes the image.',
    like: 'Resize',
    tolerance: 'within 2 levels of Pillow if JPEGs are decoded whole (see below)',
    parameters: {
      size: optional(
        { ...SIZE, takes: 'the shorter side, or [height, width]' },
        'Size of the result. If omitted, the longer side becomes maxSize.',
      ),
      maxSize: optional(SIDE, 'Limit for the longer side. Not allowed if size is [height, width].'),
      ...RESIZING,
    },
  },
  {
    check: (step) => {
      const { size, maxSize } = step;
      if (size === undefined && maxSize === undefined)
        return { path: 'size', message: 'is missing, and so is maxSize: set at least one of them' };
      return maxSize === undefined || size === undefined || (typeof size === 'number' && maxSize > size)
        ? checkResizing(step)
        : { path: 'maxSize', message: 'must be more than size, and size must be a single number' };
    },
    draw: (step, canvas, random) =>
      canvas.resize(resizedSize(canvas.size, step.size, step.maxSize), drawFilter(step, random)),
    shape: ({ size, maxSize }, before) =>
      typeof size === 'object' ? asSize(size) : before && resizedSize(before, size, maxSize),
    largest: ({ size, maxSize }) => {
      const height = typeof size === 'object' ? size[0] : (size ?? maxSize!);
      return { height, width: LARGEST_SIDE };
    },
    resizesTo: ({ size, maxSize }) => [size ?? maxSize!, maxSize ?? size!].flat(),
    widestFilter,
  },
);

/** Draws one random number for the scale, then the filter (v2.ScaleJitter `make_params`). */
export const scaleJitter = step(
  'scaleJitter',
  {
    help: 'Resizes the image by a random factor, keeping its aspect ratio. A factor of 1 makes it fit targetSize.',
    like: 'ScaleJitter',
    tolerance: 'within 2 levels of Pillow if JPEGs are decoded whole (see below)',
    parameters: {
      targetSize: needed(
        { ...SIZE, takes: 'a number or [width, height], 1 to 4096' },
        'Size that the image fits at a factor of 1. As in torchvision, the first number is compared with the width.',
      ),
      scaleRange: defaulted(RANGE, [0.1, 2], 'Range of the factor.'),
      ...RESIZING,
      p: ALWAYS,
    },
  },
  {
    check: checkResizing,
    widestFilter,
    draw: (step, canvas, random) => {
      if (!applies(step.p, random)) return;
      const { targetSize, scaleRange } = step;
      const { width, height } = canvas.size;
      const [targetWidth, targetHeight] = typeof targetSize === 'number' ? [targetSize, targetSize] : targetSize;
      const factor = Math.min(targetHeight / height, targetWidth / width) * uniform(scaleRange, random);
      canvas.resize({ width: wholeSide(width * factor), height: wholeSide(height * factor) }, drawFilter(step, random));
    },
    shape: () => null,
    largest: () => ({ width: LARGEST_SIDE, height: LARGEST_SIDE }),
  },
);

export const letterbox = step(
  'letterbox',
  {
    help: 'Resizes the image to fit into `size`, keeping its aspect ratio, and fills the rest with a border on both sides.',
    like: null,
    tolerance: 'as resize and Pad',
    parameters: {
      size: needed(SIZE, 'Size of the result.'),
      fill: defaulted(COLOUR, 114, 'Value of the border.'),
      maskFill: MASK_FILL,
      scaleUp: defaulted(SWITCH, true, 'If false, smaller images are not enlarged.'),
      ...RESIZING,
    },
  },
  {
    check: checkResizing,
    widestFilter,
    draw: (step, canvas, random) => {
      const { size, fill, maskFill, scaleUp } = step;
      const image = canvas.size;
      const whole = asSize(size);
      const fits = Math.min(whole.width / image.width, whole.height / image.height);
      const factor = scaleUp ? fits : Math.min(1, fits);
      const width = Math.max(1, roundHalfEven(image.width * factor));
      const height = Math.max(1, roundHalfEven(image.height * factor));
      const filter = drawFilter(step, random);
      if (width !== image.width || height !== image.height) canvas.resize({ width, height }, filter);
      const [left, top] = [Math.floor((whole.width - width) / 2), Math.floor((whole.height - height) / 2)];
      canvas.crop({ x: -left, y: -top, ...whole }, fill, maskFill);
    },
    shape: ({ size }) => asSize(size),
    largest: ({ size }) => asSize(size),
    resizesTo: ({ size }) => [size].flat(),
  },
);

function wholeSide(pixels: number): number {
  return Math.max(1, Math.trunc(pixels));
}
