import { SampleDecodeError } from '@shardtool/format';
import type { Rect } from '../codec/codec.js';
import { LARGEST_SIDE, roundHalfEven, type Size } from './crops.js';
import type { Random } from './random.js';
import { type Affine, rotatedSize, rotationOf } from './rotation.js';
import type { Step } from './steps.js';

export type Rgb = readonly [number, number, number];

/**
 * What becomes of pixels that are there, in bytes of RGB: no crop and no resize. All parameters are drawn. Formulas are
 * those of torchvision.transforms.v2.functional on uint8 tensors.
 */
export type Effect =
  | {
      readonly kind: 'rotate';
      /** From a pixel of the result to its place in the source, both counted from the middle of their image. */
      readonly matrix: Affine;
      /** Of the result. */
      readonly size: Size;
      readonly interpolation: 'nearest' | 'bilinear';
      readonly fill: Rgb;
      readonly maskFill: number;
    }
  /** `kernel` is [x, y] in pixels, odd. */
  | { readonly kind: 'blur'; readonly kernel: readonly [number, number]; readonly sigma: number }
  | { readonly kind: 'brightness' | 'contrast' | 'saturation'; readonly factor: number }
  /** `turn` is a part of the circle of hues, -0.5 to 0.5. */
  | { readonly kind: 'hue'; readonly turn: number }
  | { readonly kind: 'erase'; readonly rect: Rect; readonly value: Rgb };

type StepNamed<Name extends Step['name']> = Extract<Step, { readonly name: Name }>;
export type EffectStep = StepNamed<
  'randomRotation' | 'gaussianBlur' | 'colorJitter' | 'grayscale' | 'randomGrayscale' | 'randomErasing'
>;
export type ErasingStep = StepNamed<'randomErasing'>;

/** The effects of one step on an image of this size, in order; none where chance has it so. Draws what {@link Step}s say. */
export function drawEffects(step: EffectStep, image: Size, random: Random): Effect[] {
  switch (step.name) {
    case 'randomRotation':
      return [drawRotation(step, image, random)];
    case 'gaussianBlur':
      return [drawBlur(step, image, random)];
    case 'colorJitter':
      return drawJitter(step, random);
    case 'grayscale':
      return [{ kind: 'saturation', factor: 0 }];
    case 'randomGrayscale':
      return random.next() < step.p ? [{ kind: 'saturation', factor: 0 }] : [];
    case 'randomErasing': {
      const rect = drawErasing(step, image, random);
      return rect === null ? [] : [{ kind: 'erase', rect, value: rgb(step.value as number | Rgb) }];
    }
  }
}

/** One number: the angle (v2.RandomRotation `make_params`). */
function drawRotation(step: StepNamed<'randomRotation'>, image: Size, random: Random): Effect {
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
  return { kind: 'rotate', matrix, size, interpolation, fill: rgb(fill), maskFill: step.maskFill ?? 0 };
}

/** One number: sigma (v2.GaussianBlur `make_params`). */
function drawBlur(step: StepNamed<'gaussianBlur'>, image: Size, random: Random): Effect {
  const [x, y] = step.kernelSize;
  const sigma = uniform(step.sigma, random);
  if (x >> 1 < image.width && y >> 1 < image.height) return { kind: 'blur', kernel: step.kernelSize, sigma };
  throw new SampleDecodeError(
    {},
    `it is ${image.width}x${image.height} pixels where gaussianBlur takes ${x}x${y} around each: resize before, or choose ` +
      'a smaller kernelSize',
  );
}

/** Three numbers for the order of the four, then one for each that is asked for (v2.ColorJitter `make_params`). */
function drawJitter(step: StepNamed<'colorJitter'>, random: Random): Effect[] {
  const order = [0, 1, 2, 3];
  for (let last = 3; last > 0; last--) {
    const other = Math.floor(random.next() * (last + 1));
    [order[last], order[other]] = [order[other]!, order[last]!];
  }
  const changes: readonly (Effect | null)[] = [
    step.brightness && { kind: 'brightness', factor: uniform(step.brightness, random) },
    step.contrast && { kind: 'contrast', factor: uniform(step.contrast, random) },
    step.saturation && { kind: 'saturation', factor: uniform(step.saturation, random) },
    step.hue && { kind: 'hue', turn: uniform(step.hue, random) },
  ];
  return order.map((change) => changes[change]!).filter((change) => change !== null);
}

/**
 * One number for p; then, until a rectangle fits, two for its area and its ratio; then two for its place
 * (v2.RandomErasing `make_params`). Null where nothing is erased.
 */
export function drawErasing({ p, scale, ratio }: ErasingStep, image: Size, random: Random): Rect | null {
  if (random.next() >= p) return null;
  const logRatio = [Math.log(ratio[0]), Math.log(ratio[1])] as const;
  for (let attempt = 0; attempt < 10; attempt++) {
    const area = image.width * image.height * uniform(scale, random);
    const aspect = Math.exp(uniform(logRatio, random));
    const height = roundHalfEven(Math.sqrt(area * aspect));
    const width = roundHalfEven(Math.sqrt(area / aspect));
    if (height >= image.height || width >= image.width) continue;
    const y = Math.floor(random.next() * (image.height - height + 1));
    const x = Math.floor(random.next() * (image.width - width + 1));
    return { x, y, width, height };
  }
  return null;
}

export function rgb(value: number | Rgb): Rgb {
  return typeof value === 'number' ? [value, value, value] : value;
}

function uniform([low, high]: readonly [number, number], random: Random): number {
  return low + (high - low) * random.next();
}
