import type { Rect, Reduction, Size } from '../codec/codec.js';
import { FILTERS } from '../kernels/filters.js';
import type { Axis } from '../kernels/taps.js';
import { Annotations, type GivenAnnotations } from './annotations.js';
import { Canvas, type Pass, resultOf } from './canvas.js';
import { normal } from './distributions.js';
import type { DrawnSteps } from './drawn-steps.js';
import { type ErasingStep, entryOf, type Step } from './parse-steps.js';
import type { Random } from './random.js';
import { drawErasing } from './steps/pixels/erasing.js';
import type { CompiledTransform } from './transform.js';

/** A rectangle of finished values to erase. `noise` is the key of its random values. */
export interface ErasedPart {
  readonly rect: Rect;
  readonly value: ErasingStep['value'];
  readonly noise: readonly [number, number];
}

/** The plan for one image. The first pass reads the image; each later pass reads the result of the one before. */
export interface SamplePlan {
  readonly passes: readonly Pass[];
  /** Width of the result. */
  readonly width: number;
  /** Height of the result. */
  readonly height: number;
  /** Rectangles of the finished values to erase. */
  readonly erased: readonly ErasedPart[];
  /** The annotations, moved with the image. Null if the image has none. */
  readonly annotations: Annotations | null;
  /** Number of the first passes that are the same in all views of the image, and run once for all of them. */
  readonly sharedPasses: number;
}

/** How one of several views of an image is planned. */
export interface ViewDraws {
  /** Starts the random numbers of the view, after those of the steps that all views share. */
  readonly start: () => Random;
  /** Records what steps drew. Null if the caller does not ask for it. */
  readonly drawn: DrawnSteps | null;
}

/**
 * Draws the random parameters of a sample, step by step in the order of the list, and merges the steps into passes. A pure
 * function of the image's size, its annotations and the random numbers. With `view`, the steps that views share draw from `random`, and the others
 * from the view's own random numbers.
 */
export function planSample(
  transform: CompiledTransform,
  width: number,
  height: number,
  random: Random,
  given: GivenAnnotations | null = null,
  view: ViewDraws | null = null,
): SamplePlan {
  const annotations = given && new Annotations(given, { width, height });
  const canvas = new Canvas({ width, height }, annotations, view?.drawn);
  const { steps, shared = 0 } = transform;
  if (shared > 0) drawSteps(steps.slice(0, shared), canvas, random);
  const sharedPasses = shared > 0 ? canvas.closeShared() : 0;
  const own = view === null ? random : view.start();
  drawSteps(shared > 0 ? steps.slice(shared) : steps, canvas, own);
  const passes = canvas.passes(transform.pixelLayout);
  const result = resultOf(passes.at(-1)!);
  const { width: outputWidth, height: outputHeight } = result;
  const erased = drawErased(transform, result, own);
  return { passes, width: outputWidth, height: outputHeight, erased, annotations, sharedPasses };
}

function drawSteps(steps: readonly unknown[], canvas: Canvas, random: Random): void {
  for (const step of steps as readonly Step[]) {
    entryOf(step).draw!(step, canvas, random, drawSteps);
    canvas.drawn?.record(step.name);
  }
}

/** Draws the rectangles to erase. The value "random" draws two more numbers for each than {@link drawErasing}: the key of its noise. */
function drawErased({ erasing }: CompiledTransform, image: Size, random: Random): readonly ErasedPart[] {
  if (erasing.length === 0) return NOTHING;
  const parts: ErasedPart[] = [];
  for (const step of erasing) {
    drawErasing(step, image, random, (rect) => {
      const value = erasedValue(step, random);
      const noise = value === 'random' ? ([random.next() * 2 ** 32, random.next() * 2 ** 32] as const) : NO_NOISE;
      parts.push({ rect, value, noise });
    });
  }
  return parts;
}

/** The value of a rectangle. The mode rand draws its three channels. */
function erasedValue({ mode, value }: ErasingStep, random: Random): ErasingStep['value'] {
  if (mode === 'pixel') return 'random';
  return mode === 'rand' ? [normal(0, 1, random), normal(0, 1, random), normal(0, 1, random)] : value;
}

const NOTHING: readonly ErasedPart[] = [];
const NO_NOISE = [0, 0] as const;

/**
 * Smallest allowed ratio between the size of an image after reduced decoding and the size that the first pass resizes it to.
 * From a ratio of 2 on, the antialiased resize hides the differences.
 */
const SMALLEST_RATIO = { exact: Number.POSITIVE_INFINITY, scaled: 2, fast: 1 } as const;

/**
 * The resolution at which JPEGs are decoded. `exact`: full. `scaled`: 1/2, 1/4 or 1/8 by their DCT, if at least twice the target
 * size remains. `fast`: the same, if at least the target size remains.
 */
export type DecodeMode = keyof typeof SMALLEST_RATIO;

/** The reduction at which an image can be decoded. */
export function reductionOf(plan: SamplePlan, mode: DecodeMode): Reduction {
  const { x, y } = plan.passes[0]!;
  // These take single pixels of the full image.
  if (x.filter !== undefined && FILTERS[x.filter].weight === undefined) return 1;
  const spare = Math.min(x.source / x.output, y.source / y.output) / SMALLEST_RATIO[mode];
  return spare >= 8 ? 8 : spare >= 4 ? 4 : spare >= 2 ? 2 : 1;
}

/** The same plan for an image that is decoded at 1 / `reduction` of its size. `image` is its full size. */
export function reducedPlan(plan: SamplePlan, image: Size, reduction: Reduction): SamplePlan {
  if (reduction === 1) return plan;
  const [first, ...others] = plan.passes as [Pass, ...Pass[]];
  const { source } = first;
  const x = reducedAxis(first.x, source.x, source.width, Math.ceil(image.width / reduction), reduction);
  const y = reducedAxis(first.y, source.y, source.height, Math.ceil(image.height / reduction), reduction);
  const reduced = { x: x.start, y: y.start, width: x.axis.source, height: y.axis.source };
  return { ...plan, passes: [{ ...first, source: reduced, x: x.axis, y: y.axis }, ...others] };
}

/** The range of `length` pixels from `start`, in a reduced image of `size` pixels. Its limits are rarely whole pixels. */
function reducedAxis(axis: Axis, start: number, length: number, size: number, reduction: Reduction) {
  const first = Math.floor(start / reduction);
  const end = Math.min(size, Math.ceil((start + length) / reduction));
  const boxStart = start / reduction - first;
  const boxLength = Math.min(length / reduction, end - first - boxStart);
  return { start: first, axis: { ...axis, source: end - first, boxStart, boxLength } };
}
