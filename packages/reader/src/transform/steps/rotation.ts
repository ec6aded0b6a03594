import { SampleDecodeError } from '@shardtool/base';
import type { Values } from '../../codec/png-values.js';
import { LARGEST_SIDE, type Size } from '../crops.js';
import { type EffectEntry, type Rgb, rgb } from '../effects.js';
import { uniform } from '../random.js';
import { type Affine, rotatedSize, rotationOf } from '../rotation.js';
import { COLOUR, DEGREES, oneOf, POINT, SWITCH } from './kinds.js';
import { MASK_FILL } from './mask-fill.js';
import { defaulted, needed, optional, step } from './step.js';

export interface RotateEffect {
  readonly kind: 'rotate';
  /** From a pixel of the result to its place in the source, both counted from the middle of their image. */
  readonly matrix: Affine;
  /** Of the result. */
  readonly size: Size;
  readonly interpolation: 'nearest' | 'bilinear';
  readonly fill: Rgb;
  readonly maskFill: number;
}

/** Draws one number: the angle (v2.RandomRotation `make_params`). */
export const randomRotation = step(
  'randomRotation',
  {
    help: 'Turns by a random angle, counter-clockwise.',
    like: 'RandomRotation',
    tolerance: 'bilinear: within 1 level; nearest: the same pixels, except up to 0.2 % that lie between two',
    parameters: {
      degrees: needed(DEGREES, 'The angle: up to this many degrees each way, or [low, high].'),
      interpolation: defaulted(oneOf('nearest', 'bilinear'), 'nearest', 'Of the image. Masks take the nearest pixel.'),
      expand: defaulted(SWITCH, false, 'Makes the image as large as the turned one is.'),
      center: optional(POINT, 'What it turns about. Default: the middle.'),
      fill: defaulted(COLOUR, 0, 'What comes in at the corners.'),
      maskFill: MASK_FILL,
    },
  },
  {
    isEffect: true,
    draw: (step, canvas, random) => {
      const image = canvas.size;
      const degrees = uniform(step.degrees, random);
      const { interpolation, fill } = step;
      const center = step.center ?? [image.width / 2, image.height / 2];
      const matrix = rotationOf(degrees, [center[0] - image.width / 2, center[1] - image.height / 2]);
      const size = step.expand ? rotatedSize(matrix, image) : image;
      if (Math.max(size.width, size.height) > LARGEST_SIDE && step.expand) {
        throw new SampleDecodeError(
          {},
          `randomRotation makes it ${size.width}x${size.height} pixels, more than ${LARGEST_SIDE} a side: resize before`,
        );
      }
      canvas.turn(
        { kind: 'rotate', matrix, size, interpolation, fill: rgb(fill), maskFill: step.maskFill ?? 0 },
        step.expand,
      );
    },
    shape: ({ expand }, before) => (expand ? null : before),
    largest: ({ expand }) => (expand ? { width: LARGEST_SIDE, height: LARGEST_SIDE } : { width: 1, height: 1 }),
  },
);

export const rotate: EffectEntry<RotateEffect> = {
  makes: (_picture, { size }) => size,
  run: (from, to, { matrix, interpolation, fill }, { effects }) =>
    effects.rotate(from, to, matrix, interpolation, fill),
  mask: rotatedMask,
};

function rotatedMask(mask: Values, { matrix, size, maskFill }: RotateEffect): Values {
  const [a, b, c, d, e, f] = matrix;
  const values = new Uint8Array(size.width * size.height).fill(maskFill);
  const middle = { x: (size.width - 1) / 2, y: (size.height - 1) / 2 };
  for (let row = 0; row < size.height; row++) {
    const y = row - middle.y;
    for (let column = 0; column < size.width; column++) {
      const x = column - middle.x;
      const fromX = Math.floor(a * x + b * y + c + mask.width / 2);
      const fromY = Math.floor(d * x + e * y + f + mask.height / 2);
      if (fromX < 0 || fromY < 0 || fromX >= mask.width || fromY >= mask.height) continue;
      values[row * size.width + column] = mask.values[fromY * mask.width + fromX]!;
    }
  }
  return { ...size, values };
}
