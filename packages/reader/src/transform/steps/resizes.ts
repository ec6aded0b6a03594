import { asSize, LARGEST_SIDE, resizedSize, roundHalfEven } from '../crops.js';
import { uniform } from '../random.js';
import { COLOUR, RANGE, SIDE, SIZE, SWITCH } from './kinds.js';
import { MASK_FILL } from './mask-fill.js';
import { defaulted, needed, optional, step } from './step.js';

export const resize = step(
  'resize',
  {
    help: 'Resizes, antialiased, with bilinear weights.',
    like: 'Resize',
    tolerance: 'within 2 levels of Pillow if JPEGs are decoded whole (see below)',
    parameters: {
      size: optional(
        { ...SIZE, takes: 'the shorter side, or [height, width]' },
        'Of the result. Without it, the longer side becomes maxSize.',
      ),
      maxSize: optional(SIDE, 'The most that the longer side may become, where size is not [height, width].'),
    },
  },
  {
    check: ({ size, maxSize }) => {
      if (size === undefined && maxSize === undefined)
        return { path: 'size', message: 'is missing, and so is maxSize: give one of them' };
      return maxSize === undefined || size === undefined || (typeof size === 'number' && maxSize > size)
        ? undefined
        : { path: 'maxSize', message: 'must be more than size, and size one number' };
    },
    draw: ({ size, maxSize }, canvas) => canvas.resize(resizedSize(canvas.size, size, maxSize)),
    shape: ({ size, maxSize }, before) =>
      typeof size === 'object' ? asSize(size) : before && resizedSize(before, size, maxSize),
    largest: ({ size, maxSize }) => {
      const height = typeof size === 'object' ? size[0] : (size ?? maxSize!);
      return { height, width: LARGEST_SIDE };
    },
    resizesTo: ({ size, maxSize }) => [size ?? maxSize!, maxSize ?? size!].flat(),
  },
);

/** Draws one number: the scale (v2.ScaleJitter `make_params`). */
export const scaleJitter = step(
  'scaleJitter',
  {
    help: 'Resizes by a random factor, sides alike: 1 makes the image fit targetSize.',
    like: 'ScaleJitter',
    tolerance: 'within 2 levels of Pillow if JPEGs are decoded whole (see below)',
    parameters: {
      targetSize: needed(
        { ...SIZE, takes: 'a number or [width, height], 1 to 4096' },
        'What a factor of 1 fits. In the order of torchvision, whose first number is compared with the width.',
      ),
      scaleRange: defaulted(RANGE, [0.1, 2], 'What the factor is drawn from.'),
    },
  },
  {
    draw: ({ targetSize, scaleRange }, canvas, random) => {
      const { width, height } = canvas.size;
      const [targetWidth, targetHeight] = typeof targetSize === 'number' ? [targetSize, targetSize] : targetSize;
      const factor = Math.min(targetHeight / height, targetWidth / width) * uniform(scaleRange, random);
      canvas.resize({ width: wholeSide(width * factor), height: wholeSide(height * factor) });
    },
    shape: () => null,
    largest: () => ({ width: LARGEST_SIDE, height: LARGEST_SIDE }),
  },
);

export const letterbox = step(
  'letterbox',
  {
    help: 'Resizes until the image fits, sides alike, and adds a border on both sides of what is missing.',
    like: null,
    tolerance: 'as resize and Pad',
    parameters: {
      size: needed(SIZE, 'Of the result: a number for a square, or [height, width].'),
      fill: defaulted(COLOUR, 114, 'The value of the border.'),
      maskFill: MASK_FILL,
      scaleUp: defaulted(SWITCH, true, 'False: smaller images stay as they are.'),
    },
  },
  {
    draw: ({ size, fill, maskFill, scaleUp }, canvas) => {
      const image = canvas.size;
      const whole = asSize(size);
      const fits = Math.min(whole.width / image.width, whole.height / image.height);
      const factor = scaleUp ? fits : Math.min(1, fits);
      const width = Math.max(1, roundHalfEven(image.width * factor));
      const height = Math.max(1, roundHalfEven(image.height * factor));
      if (width !== image.width || height !== image.height) canvas.resize({ width, height });
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
