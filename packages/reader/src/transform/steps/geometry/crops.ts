import { SampleDecodeError, sentence } from '@shardtool/base';
import type { Rect } from '../../../codec/codec.js';
import type { BorderMode } from '../../borders.js';
import type { Canvas } from '../../canvas.js';
import { asSize, centerCropRect, type Padding, randomCropRect, randomResizedCropRect } from '../../crops.js';
import { ALWAYS, applies, shapeWithChance } from '../../parameters/chance.js';
import { checkResizing, drawFilter, RESIZING, widestFilter } from '../../parameters/interpolation.js';
import { BYTE, COLOUR, oneOf, PADDING, RANGE, SIZE, SWITCH } from '../../parameters/kinds.js';
import { MASK_FILL, PADDING_MODE, refuseMirrored } from '../../parameters/mask-fill.js';
import { defaulted, needed } from '../../parameters/parameter.js';
import { step } from '../step.js';

/** The longest side that a JPEG can have, in pixels. */
const LONGEST_IMAGE_SIDE = 65_535;
const SIZE_HELP = 'Size of the result.';

export const centerCrop = step(
  'centerCrop',
  {
    help: 'Crops the center of the image. Parts outside the image are black.',
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

export const cornerCrop = step(
  'cornerCrop',
  {
    help: 'Crops a corner of the image: one of the crops of FiveCrop and TenCrop.',
    like: null,
    tolerance: 'equal',
    parameters: {
      size: needed(SIZE, SIZE_HELP),
      corner: needed(oneOf('topLeft', 'topRight', 'bottomLeft', 'bottomRight'), 'The corner.'),
    },
  },
  {
    draw: ({ size, corner }, canvas) => {
      const image = canvas.size;
      const crop = asSize(size);
      if (crop.width > image.width || crop.height > image.height) {
        throw new SampleDecodeError(
          {},
          sentence`it is ${image.width}x${image.height} pixels, smaller than the cornerCrop of ${crop.width}x${crop.height}: resize it first`,
        );
      }
      const x = corner.endsWith('Right') ? image.width - crop.width : 0;
      const y = corner.startsWith('bottom') ? image.height - crop.height : 0;
      canvas.crop({ x, y, ...crop }, 0);
    },
    shape: ({ size }) => asSize(size),
    largest: ({ size }) => asSize(size),
  },
);

export const centerCropOrPad = step(
  'centerCropOrPad',
  {
    help: "Crops the center of the image, and pads it where it is smaller (timm's CenterCropOrPad).",
    like: null,
    tolerance: 'equal',
    parameters: {
      size: needed(SIZE, SIZE_HELP),
      fill: defaulted(COLOUR, 0, 'Value of the added pixels.'),
      maskFill: MASK_FILL,
    },
  },
  {
    draw: ({ size, fill, maskFill }, canvas) => canvas.crop(centerCropRect(canvas.size, asSize(size)), fill, maskFill),
    shape: ({ size }) => asSize(size),
    largest: ({ size }) => asSize(size),
  },
);

export const randomCrop = step(
  'randomCrop',
  {
    help: 'Crops at a random position.',
    like: 'RandomCrop',
    tolerance: 'equal',
    parameters: {
      size: needed(SIZE, SIZE_HELP),
      padding: defaulted(PADDING, 0, 'Pixels to add around the image before cropping.'),
      padIfNeeded: defaulted(
        SWITCH,
        false,
        'Pads images that are smaller than the crop. If false, these images are bad samples.',
      ),
      fill: defaulted(BYTE, 0, 'Value of the added pixels.'),
      maskFill: MASK_FILL,
      paddingMode: PADDING_MODE,
      p: ALWAYS,
    },
  },
  {
    refusesAnnotations: ({ paddingMode }, option) => refuseMirrored(paddingMode, option),
    addsPixels: ({ paddingMode, padding, padIfNeeded, size }) => {
      if (paddingMode === 'constant') return 0;
      const { left, top, right, bottom } = asPadding(padding);
      const { width, height } = padIfNeeded ? asSize(size) : { width: 0, height: 0 };
      return (left + top + right + bottom + 2 * (width + height)) * LONGEST_IMAGE_SIDE;
    },
    draw: ({ size, padding, padIfNeeded, fill, maskFill, paddingMode, p }, canvas, random) => {
      if (!applies(p, random)) return;
      const image = canvas.size;
      const crop = asSize(size);
      const rect = randomCropRect(image, crop, asPadding(padding), padIfNeeded, random);
      if (rect !== null) {
        if (paddingMode === 'constant') canvas.crop(rect, fill, maskFill);
        else cropContinued(canvas, rect, paddingMode);
        return;
      }
      throw new SampleDecodeError(
        {},
        sentence`it is ${image.width}x${image.height} pixels, smaller than the randomCrop of ${crop.width}x${crop.height}: resize it first, or set padIfNeeded of randomCrop`,
      );
    },
    shape: ({ size, p }, before) => shapeWithChance(p, before, asSize(size)),
    largest: ({ size }) => asSize(size),
  },
);

/** Crops a rectangle that may extend beyond the image, which is continued there. */
function cropContinued(canvas: Canvas, rect: Rect, mode: BorderMode): void {
  const { width, height } = canvas.size;
  const left = Math.max(0, -rect.x);
  const top = Math.max(0, -rect.y);
  const right = Math.max(0, rect.x + rect.width - width);
  const bottom = Math.max(0, rect.y + rect.height - height);
  canvas.pad({ left, top, right, bottom }, 0, 0, mode);
  canvas.crop({ ...rect, x: rect.x + left, y: rect.y + top }, 0);
}

export const randomResizedCrop = step(
  'randomResizedCrop',
  {
    help: 'Crops a rectangle of random area and aspect ratio, and resizes it.',
    like: 'RandomResizedCrop',
    tolerance: 'within 2 levels of Pillow if JPEGs are decoded whole (see below)',
    parameters: {
      size: needed(SIZE, SIZE_HELP),
      scale: defaulted(RANGE, [0.08, 1], 'Area of the crop as a fraction of the image area.'),
      ratio: defaulted(RANGE, [3 / 4, 4 / 3], 'Aspect ratio of the crop, width / height.'),
      ...RESIZING,
      p: ALWAYS,
    },
  },
  {
    check: checkResizing,
    widestFilter,
    draw: (step, canvas, random) => {
      if (!applies(step.p, random)) return;
      canvas.crop(randomResizedCropRect(canvas.size, step.scale, step.ratio, random), 0);
      canvas.resize(asSize(step.size), drawFilter(step, random));
    },
    shape: ({ size, p }, before) => shapeWithChance(p, before, asSize(size)),
    largest: ({ size }) => asSize(size),
    resizesTo: ({ size }) => [size].flat(),
  },
);

export function asPadding(padding: number | readonly number[]): Padding {
  if (typeof padding === 'number') return { left: padding, top: padding, right: padding, bottom: padding };
  const [left, top, right = left, bottom = top] = padding as readonly [number, number, number?, number?];
  return { left, top, right, bottom };
}
