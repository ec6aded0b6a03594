/** Affine maps: random ones, and quarter turns. */
import { roundHalfEven } from '../../crops.js';
import { rgb } from '../../effects.js';
import { ALWAYS, applies, HALF_THE_TIME, shapeWithChance } from '../../parameters/chance.js';
import { COLOUR, DEGREES, oneOf, POINT, RANGE, SHARES, SHEAR } from '../../parameters/kinds.js';
import { MASK_FILL } from '../../parameters/mask-fill.js';
import { defaulted, needed, optional } from '../../parameters/parameter.js';
import { integerBelow, uniform } from '../../random.js';
import { type Affine, rotationOf } from '../../rotation.js';
import { step } from '../step.js';

/**
 * Draws one random number for the angle, then two for the translation, one for the scale, and one or two for the shear,
 * if these are set (v2.RandomAffine `make_params`).
 */
export const randomAffine = step(
  'randomAffine',
  {
    help: 'Rotates, moves, scales and shears the image. The size stays.',
    like: 'RandomAffine',
    tolerance:
      'bilinear: within 1 level; nearest: equal, except for up to 0.2 % of positions exactly between two pixels',
    parameters: {
      degrees: needed(DEGREES, 'Angle: up to this many degrees in each direction, or a range.'),
      translate: optional(SHARES, 'Largest translation, as parts of width and height.'),
      scale: optional(RANGE, 'Range of the scale.'),
      shear: optional(SHEAR, 'Shear in degrees: up to this much along x, or a range along x, or ranges along x and y.'),
      interpolation: defaulted(
        oneOf('nearest', 'bilinear', 'bicubic'),
        'nearest',
        'Interpolation of the image. Bicubic uses the same filter as Pillow. Masks always use the nearest pixel.',
      ),
      fill: defaulted(COLOUR, 0, 'Value of the pixels outside the image.'),
      center: optional(POINT, 'Fixed point of rotation, scale and shear. Default: the center of the image.'),
      maskFill: MASK_FILL,
      p: ALWAYS,
    },
  },
  {
    isEffect: true,
    draw: (step, canvas, random) => {
      if (!applies(step.p, random)) return;
      const { width, height } = canvas.size;
      const { interpolation, fill } = step;
      const degrees = uniform(step.degrees, random);
      const moved = (share: number) => roundHalfEven(uniform([-share, share], random));
      const [x, y] = step.translate ?? [0, 0];
      const translate =
        step.translate === undefined ? ([0, 0] as const) : ([moved(x * width), moved(y * height)] as const);
      const scale = step.scale === undefined ? 1 : uniform(step.scale, random);
      const shearX = step.shear === undefined ? 0 : uniform(step.shear[0], random);
      const shearY = step.shear?.[1] === undefined ? 0 : uniform(step.shear[1], random);
      const center = step.center ?? [width / 2, height / 2];
      const fromCenter = [center[0] - width / 2, center[1] - height / 2] as const;
      const matrix = affineOf({ degrees, translate, scale, shear: [shearX, shearY] }, fromCenter);
      const size = { width, height };
      const maskFill = step.maskFill ?? 0;
      canvas.rotate({ kind: 'rotate', matrix, size, interpolation, fill: rgb(fill), maskFill }, false);
    },
  },
);

interface AffineParameters {
  readonly degrees: number;
  readonly translate: readonly [number, number];
  readonly scale: number;
  readonly shear: readonly [number, number];
}

/**
 * The map from a pixel of the result to its position in the source, relative to the center of the image
 * (v2.functional `_get_inverse_affine_matrix`). `center` is the fixed point.
 */
function affineOf({ degrees, translate, scale, shear }: AffineParameters, [x, y]: readonly [number, number]): Affine {
  const [turn, shearX, shearY] = [degrees, ...shear].map((angle) => (angle * Math.PI) / 180) as [
    number,
    number,
    number,
  ];
  const a = Math.cos(turn - shearY) / Math.cos(shearY);
  const b = -(a * Math.tan(shearX) + Math.sin(turn));
  const c = Math.sin(turn - shearY) / Math.cos(shearY);
  const d = Math.cos(turn) - c * Math.tan(shearX);
  const [toX, toY] = [x + translate[0], y + translate[1]];
  const [p, q, r, s] = [d / scale, -b / scale, -c / scale, a / scale];
  return [p, q, x - p * toX - q * toY, r, s, y - r * toX - s * toY];
}

/** Draws one random number for p, then one for the number of quarter turns, 0 to 3. */
export const randomRotate90 = step(
  'randomRotate90',
  {
    help: 'Rotates the image by a random multiple of 90 degrees.',
    like: null,
    tolerance: 'equal',
    parameters: { p: HALF_THE_TIME },
  },
  {
    isEffect: true,
    draw: ({ p }, canvas, random) => {
      if (random.next() >= p) return;
      const turns = integerBelow(4, random);
      if (turns === 0) return;
      const { width, height } = canvas.size;
      const size = turns === 2 ? { width, height } : { width: height, height: width };
      const matrix = rotationOf(turns * 90, [0, 0]);
      canvas.rotate(
        { kind: 'rotate', matrix, size, interpolation: 'nearest', fill: [0, 0, 0], maskFill: 0 },
        turns !== 2,
      );
    },
    shape: ({ p }, before) => shapeWithChance(p, before, before?.width === before?.height ? before : null),
  },
);
