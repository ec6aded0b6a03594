import type { Rect } from '../../codec/codec.js';
import type { Canvas } from '../canvas.js';
import { type Random, uniform } from '../random.js';
import { COUNT, NOT_NEGATIVE, PART, PARTS_LIST, POSITIVE } from './kinds.js';
import { defaulted, step } from './step.js';

/** After so many trials in vain the image stays as it is; torchvision goes on until chance says that it stays. */
const MOST_TRIALS = 800;

/**
 * Draws one number for the overlap; then, for each trial, two for width and height and, where their ratio is allowed, two for
 * the place, x first (v2.RandomIoUCrop `make_params`).
 */
export const randomIoUCrop = step(
  'randomIoUCrop',
  {
    help: 'Takes a part that holds the middle of a box and overlaps one as much as is drawn. Boxes whose middle is outside are emptied: sanitizeBoundingBoxes drops them.',
    like: 'RandomIoUCrop',
    tolerance: 'equal',
    parameters: {
      minScale: defaulted(PART, 0.3, 'The least part of a side.'),
      maxScale: defaulted(PART, 1, 'The largest part of a side.'),
      minAspectRatio: defaulted(POSITIVE, 0.5, 'The least width over height.'),
      maxAspectRatio: defaulted(POSITIVE, 2, 'The largest width over height.'),
      samplerOptions: defaulted(
        PARTS_LIST,
        [0, 0.1, 0.3, 0.5, 0.7, 0.9, 1],
        'Overlaps (intersection over union) of which one is drawn; 1 leaves the image as it is.',
      ),
      trials: defaulted(COUNT, 40, 'How often a part is drawn before another overlap is.'),
    },
  },
  {
    needsBoxes: true,
    draw: (step, canvas, random) => {
      // Without boxes torchvision searches until it leaves the image as it is.
      if (canvas.annotations!.rows.length === 0) return;
      for (let tried = 0; tried < MOST_TRIALS; tried += step.trials) {
        const overlap = step.samplerOptions[Math.floor(random.next() * step.samplerOptions.length)]!;
        if (overlap >= 1) return;
        const rect = drawPart(step, overlap, canvas, random);
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

interface PartStep {
  readonly minScale: number;
  readonly maxScale: number;
  readonly minAspectRatio: number;
  readonly maxAspectRatio: number;
  readonly trials: number;
}

/** A part that overlaps a box enough; null where no trial gives one. */
function drawPart(step: PartStep, overlap: number, { size, annotations }: Canvas, random: Random): Rect | null {
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

/** Whether the middle of a box is not in the rectangle. */
function outside({ x, y, width, height }: Rect, boxes: Float64Array): (box: number) => boolean {
  const middles = Float64Array.from({ length: boxes.length / 2 }, (_, i) => {
    const at = (i >> 1) * 4 + (i & 1);
    return 0.5 * (boxes[at]! + boxes[at + 2]!);
  });
  return (box) => {
    const [middleX, middleY] = [middles[box * 2]!, middles[box * 2 + 1]!];
    return !(x < middleX && middleX < x + width && y < middleY && middleY < y + height);
  };
}

/** Intersection over union. */
function overlapOf([left, top, right, bottom]: Float64Array, { x, y, width, height }: Rect): number {
  const shared =
    Math.max(0, Math.min(right!, x + width) - Math.max(left!, x)) *
    Math.max(0, Math.min(bottom!, y + height) - Math.max(top!, y));
  return shared / ((right! - left!) * (bottom! - top!) + width * height - shared);
}

export const sanitizeBoundingBoxes = step(
  'sanitizeBoundingBoxes',
  {
    help: 'Drops boxes that are too small, or partly outside the image, and what belongs to them.',
    like: 'SanitizeBoundingBoxes',
    tolerance: 'the same rows',
    parameters: {
      minSize: defaulted(NOT_NEGATIVE, 1, 'The least width and height in pixels.'),
      minArea: defaulted(NOT_NEGATIVE, 1, 'The least area in pixels.'),
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
