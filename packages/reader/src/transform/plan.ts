import { SampleDecodeError } from '@shardtool/format';
import type { Rect, Reduction } from '../codec/codec.js';
import type { PixelLayout } from '../kernels/resize.js';
import type { Axis } from '../kernels/taps.js';
import {
  centerCropRect,
  LARGEST_SIDE,
  type Padding,
  randomCropRect,
  randomResizedCropRect,
  resizedSize,
  type Size,
} from './crops.js';
import { drawEffects, drawErasing, type Effect } from './effects.js';
import type { ErasedPart } from './erase-values.js';
import type { Random } from './random.js';
import type { CompiledTransform, PixelStep } from './transform.js';

/** What becomes of one image: the first pass reads the image, each other one the result of the one before. */
export interface SamplePlan {
  readonly passes: readonly Pass[];
  /** Of the result. */
  readonly width: number;
  readonly height: number;
  /** What of the finished values is erased. */
  readonly erased: readonly ErasedPart[];
}

/**
 * One run of the resize kernel, then a border, then effects. `source` is the part of the pass's input that the axes are
 * about: x.source = source.width. With its border it is border.left + x.count + border.right wide; a count of 0 leaves
 * nothing but border.
 */
export interface Pass {
  readonly source: Rect;
  readonly x: Axis;
  readonly y: Axis;
  readonly border: Border | null;
  /**
   * Which flips came before the resize; none without. Images are the same either way, but what is nearest to a place is
   * rounded down, and that is another pixel in a mirror.
   */
  readonly flippedFirst?: { readonly x: boolean; readonly y: boolean };
  /** Without effects there is no list. */
  readonly effects?: readonly Effect[];
}

export interface Border extends Padding {
  /** The value of its pixels, 0 to 255, and that of a mask's. */
  readonly fill: number;
  readonly maskFill: number;
}

/**
 * Draws the random parameters of a sample, step by step in the order of the list, and folds the steps into as few passes as
 * give the same pixels: crops and flips join the resize before or after them. A second resize, a crop of a border, and a
 * crop or flip behind an effect start a pass of their own. A pure function of the image's size and the random numbers.
 */
export function planSample(transform: CompiledTransform, width: number, height: number, random: Random): SamplePlan {
  const passes: Pass[] = [];
  let draft = draftOf({ width, height });
  const finish = (border: Border | null): void => {
    const pass = passOf(draft, border);
    passes.push(pass);
    draft = draftOf(resultOf(pass));
  };
  const crop = (rect: Rect, fill: number, maskFill = 0): void => {
    const border = cropDraft(draft, rect, fill, maskFill);
    if (border !== null) finish(border);
  };
  const resize = (size: Size): void => {
    if (draft.resized !== null) finish(null);
    resizeDraft(draft, size);
  };
  const affect = (effects: readonly Effect[]): void => {
    if (effects.length === 0) return;
    if (passes.length === 0 || !isUntouched(draft, resultOf(passes.at(-1)!))) finish(null);
    const last = passes.pop()!;
    const pass = { ...last, effects: [...(last.effects ?? []), ...effects] };
    passes.push(pass);
    draft = draftOf(resultOf(pass));
  };
  for (const step of transform.steps) {
    const size = sizeOf(draft);
    switch (step.name) {
      case 'randomHorizontalFlip':
        if (random.next() < step.p) draft.flipX = !draft.flipX;
        break;
      case 'randomVerticalFlip':
        if (random.next() < step.p) draft.flipY = !draft.flipY;
        break;
      case 'centerCrop':
        crop(centerCropRect(size, asSize(step.size)), 0);
        break;
      case 'randomCrop':
        crop(drawRandomCrop(step, size, random), step.fill, step.maskFill);
        break;
      case 'resize':
        resize(resizedSize(size, step.size, step.maxSize));
        break;
      case 'randomResizedCrop':
        crop(randomResizedCropRect(size, step.scale, step.ratio, random), 0);
        resize(asSize(step.size));
        break;
      default:
        affect(drawEffects(step, size, random));
    }
  }
  // Borders and effects are drawn in bytes, pixel after pixel; another layout takes one more pass.
  const last = passes.at(-1);
  const finished = last !== undefined && transform.pixelLayout === 'uint8-nhwc' && isUntouched(draft, resultOf(last));
  if (!finished) finish(null);
  passes.forEach((pass, i) => {
    checkSides(pass, i === passes.length - 1 ? transform.pixelLayout : 'uint8-nhwc');
  });
  const result = resultOf(passes.at(-1)!);
  const { width: outputWidth, height: outputHeight } = result;
  return { passes, width: outputWidth, height: outputHeight, erased: drawErased(transform, result, random) };
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

function checkSides(pass: Pass, layout: PixelLayout): void {
  const { x, y } = pass;
  if (Math.max(x.count, y.count) <= LARGEST_SIDE || isCopy(pass, layout)) return;
  throw new SampleDecodeError(
    {},
    `the transform makes it ${x.count}x${y.count} pixels, more than ${LARGEST_SIDE} a side: add a crop, or give resize a ` +
      'maxSize or [height, width]',
  );
}

/** Whether all that a pass does to its pixels is to take some of them: then no kernel is needed. */
export function isCopy({ x, y }: Pass, layout: PixelLayout): boolean {
  return layout === 'uint8-nhwc' && x.source === x.output && y.source === y.output && !x.flip && !y.flip;
}

/** The size of what a pass makes. */
export function resultOf(pass: Pass): Size {
  const turned = pass.effects?.findLast((effect) => effect.kind === 'rotate');
  return turned?.size ?? borderedOf(pass);
}

/** The size of what a pass makes before its effects. */
export function borderedOf({ x, y, border }: Pass): Size {
  return {
    width: x.count + (border === null ? 0 : border.left + border.right),
    height: y.count + (border === null ? 0 : border.top + border.bottom),
  };
}

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

/** A pass in the making: a crop of its input, resized (or not), a window of that, mirrored each way (or not). */
interface Draft {
  crop: Rect;
  resized: Size | null;
  window: Rect;
  flipX: boolean;
  flipY: boolean;
  /** Of the flips, those before the resize. */
  flippedFirst: { readonly x: boolean; readonly y: boolean } | null;
}

function draftOf({ width, height }: Size): Draft {
  const all = { x: 0, y: 0, width, height };
  return { crop: all, resized: null, window: all, flipX: false, flipY: false, flippedFirst: null };
}

function isUntouched({ crop, resized, flipX, flipY }: Draft, input: Size): boolean {
  return resized === null && !flipX && !flipY && crop.width === input.width && crop.height === input.height;
}

function sizeOf(draft: Draft): Size {
  return draft.resized === null ? draft.crop : draft.window;
}

function resizeDraft(draft: Draft, size: Size): void {
  draft.resized = size;
  if (draft.flipX || draft.flipY) draft.flippedFirst = { x: draft.flipX, y: draft.flipY };
  draft.window = { x: 0, y: 0, ...size };
}

/** Takes a part. Where it lies partly outside, only what is inside is taken, and the border that is missing returned. */
function cropDraft(draft: Draft, rect: Rect, fill: number, maskFill: number): Border | null {
  const size = sizeOf(draft);
  const left = clamp(rect.x, size.width);
  const top = clamp(rect.y, size.height);
  const right = clamp(rect.x + rect.width, size.width);
  const bottom = clamp(rect.y + rect.height, size.height);
  const width = right - left;
  const height = bottom - top;
  const x = draft.flipX ? size.width - right : left;
  const y = draft.flipY ? size.height - bottom : top;
  if (draft.resized === null) {
    draft.crop = { x: draft.crop.x + x, y: draft.crop.y + y, width, height };
    draft.window = draft.crop;
  } else draft.window = { x: draft.window.x + x, y: draft.window.y + y, width, height };
  if (width === rect.width && height === rect.height) return null;
  const before = { left: Math.min(left - rect.x, rect.width), top: Math.min(top - rect.y, rect.height) };
  return {
    ...before,
    right: rect.width - width - before.left,
    bottom: rect.height - height - before.top,
    fill,
    maskFill,
  };
}

function clamp(value: number, size: number): number {
  return Math.max(0, Math.min(value, size));
}

function passOf(draft: Draft, border: Border | null): Pass {
  const { crop, resized, window, flipX, flipY, flippedFirst } = draft;
  const part = resized === null ? { x: 0, y: 0, width: crop.width, height: crop.height } : window;
  // Written out: spread into new objects, this took as long as the rest of the plan.
  const pass: Pass = {
    source: crop,
    x: {
      source: crop.width,
      output: resized === null ? crop.width : resized.width,
      first: part.x,
      count: part.width,
      flip: flipX,
    },
    y: {
      source: crop.height,
      output: resized === null ? crop.height : resized.height,
      first: part.y,
      count: part.height,
      flip: flipY,
    },
    border,
  };
  return flippedFirst === null ? pass : { ...pass, flippedFirst };
}

function drawRandomCrop(step: Extract<PixelStep, { name: 'randomCrop' }>, image: Size, random: Random): Rect {
  const crop = asSize(step.size);
  const rect = randomCropRect(image, crop, asPadding(step.padding), step.padIfNeeded, random);
  if (rect !== null) return rect;
  throw new SampleDecodeError(
    {},
    `it is ${image.width}x${image.height} pixels where randomCrop takes ${crop.width}x${crop.height}: resize before, or ` +
      'give randomCrop padIfNeeded',
  );
}

function asSize(size: number | readonly [number, number]): Size {
  return typeof size === 'number' ? { width: size, height: size } : { width: size[1], height: size[0] };
}

function asPadding(padding: number | readonly number[]): Padding {
  if (typeof padding === 'number') return { left: padding, top: padding, right: padding, bottom: padding };
  const [left, top, right = left, bottom = top] = padding as readonly [number, number, number?, number?];
  return { left, top, right, bottom };
}
