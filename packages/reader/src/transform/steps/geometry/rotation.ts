import { SampleDecodeError, sentence } from '@shardtool/base';
import type { Size } from '../../../codec/codec.js';
import type { Values } from '../../../codec/wide/png-values.js';
import type { RotateInterpolation } from '../../../kernels/effects.js';
import { LARGEST_SIDE } from '../../crops.js';
import { type EffectEntry, type Rgb, rgb } from '../../effects.js';
import { ALWAYS, applies, shapeWithChance } from '../../parameters/chance.js';
import { COLOUR, DEGREES, oneOf, POINT, SWITCH } from '../../parameters/kinds.js';
import { MASK_FILL } from '../../parameters/mask-fill.js';
import { defaulted, needed, optional } from '../../parameters/parameter.js';
import { uniform } from '../../random.js';
import { type Affine, rotatedSize, rotationOf } from '../../rotation.js';
import { step } from '../step.js';

export interface RotateEffect {
  readonly kind: 'rotate';
  /** Maps a pixel of the result to its position in the source. Both are relative to the center of their image. */
  readonly matrix: Affine;
  /** Size of the result. */
  readonly size: Size;
  readonly interpolation: RotateInterpolation;
  /** Null: black, with which torchvision blends the edge once instead of twice. */
  readonly fill: Rgb | null;
  readonly maskFill: number;
}

/** Draws one random number: the angle (v2.RandomRotation `make_params`). */
export const randomRotation = step(
  'randomRotation',
  {
    help: 'Rotates the image counter-clockwise by a random angle.',
    like: 'RandomRotation',
    tolerance:
      'bilinear: within 1 level; nearest: equal, except for up to 0.2 % of positions exactly between two pixels',
    parameters: {
      degrees: needed(DEGREES, 'Angle: up to this many degrees in each direction, or a range.'),
      interpolation: defaulted(
        oneOf('nearest', 'bilinear', 'bicubic'),
        'nearest',
        'Interpolation of the image. Bicubic uses the same filter as Pillow. Masks always use the nearest pixel.',
      ),
      expand: defaulted(SWITCH, false, 'Enlarges the result to hold the whole rotated image.'),
      center: optional(POINT, 'Center of rotation. Default: the center of the image.'),
      fill: defaulted(COLOUR, 0, 'Value of the pixels outside the image.'),
      maskFill: MASK_FILL,
      p: ALWAYS,
    },
  },
  {
    isEffect: true,
    draw: (step, canvas, random) => {
      if (!applies(step.p, random)) return;
      const image = canvas.size;
      const degrees = uniform(step.degrees, random);
      const { interpolation, fill } = step;
      const center = step.center ?? [image.width / 2, image.height / 2];
      const matrix = rotationOf(degrees, [center[0] - image.width / 2, center[1] - image.height / 2]);
      const size = step.expand ? rotatedSize(matrix, image) : image;
      if (Math.max(size.width, size.height) > LARGEST_SIDE && step.expand) {
        throw new SampleDecodeError(
          {},
          sentence`randomRotation makes it ${size.width}x${size.height} pixels, more than ${LARGEST_SIDE} per side: resize it first`,
        );
      }
      canvas.rotate(
        { kind: 'rotate', matrix, size, interpolation, fill: rgb(fill), maskFill: step.maskFill ?? 0 },
        step.expand,
      );
    },
    shape: ({ expand, p }, before) => shapeWithChance(p, before, expand ? null : before),
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
  const center = { x: (size.width - 1) / 2, y: (size.height - 1) / 2 };
  for (let row = 0; row < size.height; row++) {
    const y = row - center.y;
    for (let column = 0; column < size.width; column++) {
      const x = column - center.x;
      const fromX = Math.floor(a * x + b * y + c + mask.width / 2);
      const fromY = Math.floor(d * x + e * y + f + mask.height / 2);
      if (fromX < 0 || fromY < 0 || fromX >= mask.width || fromY >= mask.height) continue;
      values[row * size.width + column] = mask.values[fromY * mask.width + fromX]!;
    }
  }
  return { ...size, values };
}
