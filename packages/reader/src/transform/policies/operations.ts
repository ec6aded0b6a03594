import type { Size } from '../../codec/codec.js';
/** The operations of torchvision's policies (v2 `_AutoAugmentBase`), with its arithmetic for tensors. */
import type { Canvas } from '../canvas.js';
import { roundHalfEven } from '../crops.js';
import { type Effect, type Rgb, rgb } from '../effects.js';
import { type Affine, rotationOf } from '../rotation.js';

export type Operation =
  | 'identity'
  | 'shearX'
  | 'shearY'
  | 'translateX'
  | 'translateY'
  | 'rotate'
  | 'brightness'
  | 'color'
  | 'contrast'
  | 'sharpness'
  | 'posterize'
  | 'solarize'
  | 'autoContrast'
  | 'equalize'
  | 'invert';

/** The largest magnitude of each kind of operation. */
export interface Space {
  /** Shear, as a factor. */
  readonly shear: number;
  /** Translation as a fraction of the image's side, or in pixels. */
  readonly translate: { readonly fraction: number } | { readonly pixels: number };
  /** Rotation in degrees. */
  readonly rotate: number;
  /** Distance of the factors of brightness, color, contrast and sharpness from 1. */
  readonly enhance: number;
  /** Number of bits that posterize removes. */
  readonly posterize: number;
  /** Number of bits that posterize keeps at magnitude 0. */
  readonly bits: number;
}

/** The space of RandAugment and AutoAugment. */
export const NORMAL: Space = {
  shear: 0.3,
  translate: { fraction: 150 / 331 },
  rotate: 30,
  enhance: 0.9,
  posterize: 4,
  bits: 8,
};
/** The space of TrivialAugmentWide. */
export const WIDE: Space = {
  shear: 0.99,
  translate: { pixels: 32 },
  rotate: 135,
  enhance: 0.99,
  posterize: 6,
  bits: 8,
};
/** The space of AugMix. Its posterize keeps fewer bits. */
export const AUGMIX: Space = { ...NORMAL, translate: { fraction: 1 / 3 }, bits: 4 };

/** The operations of RandAugment and TrivialAugmentWide, in the order of torchvision. */
export const OPERATIONS: readonly Operation[] = [
  'identity',
  'shearX',
  'shearY',
  'translateX',
  'translateY',
  'rotate',
  'brightness',
  'color',
  'contrast',
  'sharpness',
  'posterize',
  'solarize',
  'autoContrast',
  'equalize',
];

/** The operations of AugMix, in the order of torchvision. The last four can be left out. */
export const AUGMIX_OPERATIONS: readonly Operation[] = [
  'shearX',
  'shearY',
  'translateX',
  'translateY',
  'rotate',
  'posterize',
  'solarize',
  'autoContrast',
  'equalize',
  'brightness',
  'color',
  'contrast',
  'sharpness',
];

/** How geometric operations interpolate, and the value of the pixels outside the image. */
interface Look {
  readonly interpolation: 'nearest' | 'bilinear' | 'bicubic';
  readonly fill?: number | Rgb | undefined;
}

const SIGNED: ReadonlySet<Operation> = new Set([
  'shearX',
  'shearY',
  'translateX',
  'translateY',
  'rotate',
  'brightness',
  'color',
  'contrast',
  'sharpness',
]);

/** Whether half of all draws negate the magnitude of an operation. */
export function isSigned(operation: Operation): boolean {
  return SIGNED.has(operation);
}

/** Whether an operation depends on a magnitude. */
export function hasMagnitude(operation: Operation): boolean {
  return SIGNED.has(operation) || operation === 'posterize' || operation === 'solarize';
}

/** The magnitude of an operation at number `bin` of `bins` equal steps. 0 for operations without a magnitude. */
export function magnitudeOf(operation: Operation, space: Space, bin: number, bins: number, image: Size): number {
  const upTo = (largest: number) => linspace(0, largest, bin, bins);
  const shift = (side: number) =>
    upTo('pixels' in space.translate ? space.translate.pixels : space.translate.fraction * side);
  switch (operation) {
    case 'shearX':
    case 'shearY':
      return upTo(space.shear);
    case 'translateX':
      return shift(image.width);
    case 'translateY':
      return shift(image.height);
    case 'rotate':
      return upTo(space.rotate);
    case 'brightness':
    case 'color':
    case 'contrast':
    case 'sharpness':
      return upTo(space.enhance);
    case 'posterize':
      return roundHalfEven(Math.fround(space.bits - Math.fround(bin / Math.fround((bins - 1) / space.posterize))));
    case 'solarize':
      return linspace(1, 0, bin, bins);
    default:
      return 0;
  }
}

/** Value number `at` of torch.linspace(start, end, count), in float32 as there: the second half is counted from the end. */
function linspace(start: number, end: number, at: number, count: number): number {
  const step = Math.fround((end - start) / (count - 1));
  return at < Math.floor(count / 2) ? Math.fround(start + step * at) : Math.fround(end - step * (count - at - 1));
}

/** Applies an operation to the image, with its masks and boxes. */
export function applyOperation(operation: Operation, magnitude: number, canvas: Canvas, look: Look): void {
  const effect = operationEffect(operation, magnitude, canvas.size, look);
  if (effect?.kind === 'rotate') canvas.rotate(effect, false);
  else if (effect !== null) canvas.applyEffects([effect]);
}

/** What an operation does to an image of this size. Null: nothing. */
export function operationEffect(operation: Operation, magnitude: number, size: Size, look: Look): Effect | null {
  const matrix = matrixOf(operation, magnitude, size);
  if (matrix === null) return effectOf(operation, magnitude);
  const { interpolation, fill } = look;
  return { kind: 'rotate', matrix, size, interpolation, fill: fill === undefined ? null : rgb(fill), maskFill: 0 };
}

/** The map of a geometric operation, from the result to the source, relative to the center. Null for other operations. */
function matrixOf(operation: Operation, magnitude: number, { width, height }: Size): Affine | null {
  switch (operation) {
    case 'shearX':
      return [1, magnitude, (magnitude * height) / 2, 0, 1, 0];
    case 'shearY':
      return [1, 0, 0, magnitude, 1, (magnitude * width) / 2];
    case 'translateX':
      return [1, 0, -Math.trunc(magnitude), 0, 1, 0];
    case 'translateY':
      return [1, 0, 0, 0, 1, -Math.trunc(magnitude)];
    case 'rotate':
      return rotationOf(magnitude, [0, 0]);
    default:
      return null;
  }
}

function effectOf(operation: Operation, magnitude: number): Effect | null {
  switch (operation) {
    case 'brightness':
    case 'contrast':
    case 'sharpness':
      return { kind: operation, factor: 1 + magnitude };
    case 'color':
      return { kind: 'saturation', factor: 1 + magnitude };
    case 'posterize':
      return { kind: 'posterize', bits: magnitude };
    case 'solarize':
      return { kind: 'solarize', threshold: 255 * magnitude };
    case 'autoContrast':
      return { kind: 'autocontrast' };
    case 'equalize':
    case 'invert':
      return { kind: operation };
    default:
      return null;
  }
}
