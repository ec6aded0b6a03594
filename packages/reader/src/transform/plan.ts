import type { Rect, Reduction } from '../codec/codec.js';
import type { Axis } from '../kernels/taps.js';
import { Annotations, type GivenAnnotations } from './annotations.js';
import { Canvas, type Pass, resultOf } from './canvas.js';
import type { Size } from './crops.js';
import { type ErasingStep, entryOf } from './parse-steps.js';
import type { Random } from './random.js';
import { drawErasing } from './steps/erasing.js';
import type { CompiledTransform } from './transform.js';

/** A part of the finished values that is erased; `noise` is the key of its random values. */
export interface ErasedPart {
  readonly rect: Rect;
  readonly value: ErasingStep['value'];
  readonly noise: readonly [number, number];
}

/** What becomes of one image: the first pass reads the image, each other one the result of the one before. */
export interface SamplePlan {
  readonly passes: readonly Pass[];
  /** Of the result. */
  readonly width: number;
  readonly height: number;
  /** What of the finished values is erased. */
  readonly erased: readonly ErasedPart[];
  /** What lies on the result. Null where nothing was given. */
  readonly annotations: Annotations | null;
}

/**
 * Draws the random parameters of a sample, step by step in the order of the list, and folds the steps into passes. A pure
 * function of the image's size, what lies on it, and the random numbers.
 */
export function planSample(
  transform: CompiledTransform,
  width: number,
  height: number,
  random: Random,
  given: GivenAnnotations | null = null,
): SamplePlan {
  const annotations = given && new Annotations(given, { width, height });
  const canvas = new Canvas({ width, height }, annotations);
  for (const step of transform.steps) entryOf(step).draw!(step, canvas, random);
  const passes = canvas.passes(transform.pixelLayout);
  const result = resultOf(passes.at(-1)!);
  const { width: outputWidth, height: outputHeight } = result;
  const erased = drawErased(transform, result, random);
  return { passes, width: outputWidth, height: outputHeight, erased, annotations };
}

/** Random values take two numbers more than {@link drawErasing}: the key of their own. */
function drawErased({ erasing }: CompiledTransform, image: Size, random: Random): readonly ErasedPart[] {
  if (erasing.length === 0) return NOTHING;
  return erasing.flatMap((step): ErasedPart[] => {
    const rect = drawErasing(step, image, random);
    if (rect === null) return [];
    const noise = step.value === 'random' ? ([random.next() * 2 ** 32, random.next() * 2 ** 32] as const) : NO_NOISE;
    return [{ rect, value: step.value, noise }];
  });
}

const NOTHING: readonly ErasedPart[] = [];
const NO_NOISE = [0, 0] as const;

/**
 * How many times the size that the first pass makes of it must be left of an image that is shrunk while it is decoded. Of
 * twice the size the resize, which is antialiased, hides how it was done.
 */
const LEAST_LEFT = { exact: Number.POSITIVE_INFINITY, scaled: 2, fast: 1 } as const;

/** How large photos are decoded: whole; at 1/2, 1/4 or 1/8 by their DCT where twice the size is left; or where the size is. */
export type DecodeMode = keyof typeof LEAST_LEFT;

/** How far the image can be shrunk while it is decoded. */
export function reductionOf(plan: SamplePlan, mode: DecodeMode): Reduction {
  const { x, y } = plan.passes[0]!;
  const spare = Math.min(x.source / x.output, y.source / y.output) / LEAST_LEFT[mode];
  return spare >= 8 ? 8 : spare >= 4 ? 4 : spare >= 2 ? 2 : 1;
}

/** The same plan over an image that is decoded at 1 / `reduction` of its size. `image` is its size before. */
export function reducedPlan(plan: SamplePlan, image: Size, reduction: Reduction): SamplePlan {
  if (reduction === 1) return plan;
  const [first, ...others] = plan.passes as [Pass, ...Pass[]];
  const { source } = first;
  const x = reducedAxis(first.x, source.x, source.width, Math.ceil(image.width / reduction), reduction);
  const y = reducedAxis(first.y, source.y, source.height, Math.ceil(image.height / reduction), reduction);
  const reduced = { x: x.start, y: y.start, width: x.axis.source, height: y.axis.source };
  return { ...plan, passes: [{ ...first, source: reduced, x: x.axis, y: y.axis }, ...others] };
}

/** The stretch from `start` of `length` pixels in a reduced image of `size` pixels; it seldom is one of whole pixels. */
function reducedAxis(axis: Axis, start: number, length: number, size: number, reduction: Reduction) {
  const first = Math.floor(start / reduction);
  const end = Math.min(size, Math.ceil((start + length) / reduction));
  const boxStart = start / reduction - first;
  const boxLength = Math.min(length / reduction, end - first - boxStart);
  return { start: first, axis: { ...axis, source: end - first, boxStart, boxLength } };
}
