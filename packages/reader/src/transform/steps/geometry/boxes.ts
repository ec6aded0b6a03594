import type { Rect } from '../../../codec/codec.js';
import type { Canvas } from '../../canvas.js';
import { ALWAYS, applies } from '../../parameters/chance.js';
import { COUNT, NOT_NEGATIVE, PART, PARTS_LIST, POSITIVE } from '../../parameters/kinds.js';
import { defaulted } from '../../parameters/parameter.js';
import { drawOne, type Random, uniform } from '../../random.js';
import { step } from '../step.js';

/** Number of failed trials after which the image is left unchanged. torchvision has no limit: it tries until it draws an overlap of 1. */
const MAX_TRIALS = 800;

/**
 * Draws one random number for the overlap. Then each trial draws two for width and height and, if their ratio is allowed, two for
 * the position, x first (v2.RandomIoUCrop `make_params`).
 */
export const randomIoUCrop = step(
  'randomIoUCrop',
  {
    help: 'Crops a random rectangle that contains the center of a box and overlaps it by at least a random IoU. Boxes whose center is outside become empty; sanitizeBoundingBoxes drops them.',
    like: 'RandomIoUCrop',
    tolerance: 'equal',
    parameters: {
      minScale: defaulted(PART, 0.3, 'Smallest width and height of the crop, as fractions of the image.'),
      maxScale: defaulted(PART, 1, 'Largest width and height of the crop, as fractions of the image.'),
      minAspectRatio: defaulted(POSITIVE, 0.5, 'Smallest aspect ratio, width / height.'),
      maxAspectRatio: defaulted(POSITIVE, 2, 'Largest aspect ratio, width / height.'),
      samplerOptions: defaulted(
        PARTS_LIST,
        [0, 0.1, 0.3, 0.5, 0.7, 0.9, 1],
        'Minimum overlaps (IoU) to draw from. 1 leaves the image unchanged.',
      ),
      trials: defaulted(COUNT, 40, 'Number of crops to try before another overlap is drawn.'),
      p: ALWAYS,
    },
  },
  {
    needsBoxes: true,
    draw: (step, canvas, random) => {
      if (!applies(step.p, random)) return;
      // Without boxes, torchvision tries until it draws an overlap of 1, which leaves the image unchanged.
      if (canvas.annotations!.rows.length === 0) return;
      for (let tried = 0; tried < MAX_TRIALS; tried += step.trials) {
        const overlap = drawOne(step.samplerOptions, random);
        if (overlap >= 1) return;
        const rect = drawCrop(step, overlap, canvas, random);
        if (rect === null) continue;
        const isOutside = outside(rect, canvas.annotations!.boxes!);
        canvas.crop(rect, 0);
        canvas.annotations!.empty(isOutside);
        return;
      }
    },
    shape: () => null,
  },
);

interface CropParameters {
  readonly minScale: number;
  readonly maxScale: number;
  readonly minAspectRatio: number;
  readonly maxAspectRatio: number;
  readonly trials: number;
}

/** Draws a crop that overlaps a box enough. Null if all trials fail. */
function drawCrop(step: CropParameters, overlap: number, { size, annotations }: Canvas, random: Random): Rect | null {
  const boxes = annotations!.boxes!;
  const scale = [step.minScale, step.maxScale] as const;
  for (let trial = 0; trial < step.trials; trial++) {
    const width = Math.trunc(size.width * uniform(scale, random));
    const height = Math.trunc(size.height * uniform(scale, random));
    const ratio = width / height;
    if (!(ratio >= step.minAspectRatio && ratio <= step.maxAspectRatio)) continue;
    const x = Math.trunc((size.width - width) * random.next());
    const y = Math.trunc((size.height - height) * random.next());
    if (width === 0 || height === 0) continue;
    const rect = { x, y, width, height };
    const isOutside = outside(rect, boxes);
    let largest = -1;
    for (let box = 0; box < boxes.length / 4; box++) {
      if (!isOutside(box)) largest = Math.max(largest, overlapOf(boxes.subarray(box * 4, box * 4 + 4), rect));
    }
    if (largest >= overlap) return rect;
  }
  return null;
}

/** Returns a test whether the center of box number `box` is outside the rectangle. */
function outside({ x, y, width, height }: Rect, boxes: Float64Array): (box: number) => boolean {
  const centers = Float64Array.from({ length: boxes.length / 2 }, (_, i) => {
    const at = (i >> 1) * 4 + (i & 1);
    return 0.5 * (boxes[at]! + boxes[at + 2]!);
  });
  return (box) => {
    const [centerX, centerY] = [centers[box * 2]!, centers[box * 2 + 1]!];
    return !(x < centerX && centerX < x + width && y < centerY && centerY < y + height);
  };
}

/** Intersection over union (IoU) of a box and a rectangle. */
function overlapOf([left, top, right, bottom]: Float64Array, { x, y, width, height }: Rect): number {
  const shared =
    Math.max(0, Math.min(right!, x + width) - Math.max(left!, x)) *
    Math.max(0, Math.min(bottom!, y + height) - Math.max(top!, y));
  return shared / ((right! - left!) * (bottom! - top!) + width * height - shared);
}

export const sanitizeBoundingBoxes = step(
  'sanitizeBoundingBoxes',
  {
    help: 'Drops boxes that are too small or partly outside the image, with their labels, keypoints and polygons.',
    like: 'SanitizeBoundingBoxes',
    tolerance: 'the same rows',
    parameters: {
      minSize: defaulted(NOT_NEGATIVE, 1, 'Smallest width and height of a box in pixels.'),
      minArea: defaulted(NOT_NEGATIVE, 1, 'Smallest area of a box in pixels.'),
    },
  },
  {
    needsBoxes: true,
    draw: ({ minSize, minArea }, { annotations, size }) => {
      const boxes = annotations!.boxes!;
      annotations!.keep((object) => {
        const [left, top, right, bottom] = boxes.subarray(object * 4, object * 4 + 4) as unknown as number[];
        const [width, height] = [right! - left!, bottom! - top!];
        const isLarge = width >= minSize && height >= minSize && width * height >= minArea;
        return isLarge && left! >= 0 && top! >= 0 && right! <= size.width && bottom! <= size.height;
      });
    },
  },
);
