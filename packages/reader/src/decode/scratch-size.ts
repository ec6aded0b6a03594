import { OptionError } from '@shardtool/base';
import { isRgb } from '../codec/pixel-format.js';
import { CROP_STATE_BYTES } from '../kernels/crop-index.js';
import { LONGEST_SIDE, scratchBytes } from '../kernels/resize.js';
import { WIDE_BLOCK_BYTES } from '../kernels/wide-resize.js';
import { LARGEST_SIDE } from '../transform/crops.js';
import type { DrawnName } from '../transform/drawn-steps.js';
import { entryOf, everyStep, type PixelStep, type Step } from '../transform/parse-steps.js';
import { becomesFloatsLast, type CompiledTransform } from '../transform/transform.js';
import { valueBytes } from '../transform/values.js';
import { effectBytes } from './run-effects.js';

/** The transforms of a decoder: one, one for each batch size, or one for each view. */
export interface DecodedTransforms {
  readonly transform: CompiledTransform;
  /** The transforms that replace `transform`, by index of the batch size. They have the same dtype and layout. */
  readonly covers?: readonly CompiledTransform[] | undefined;
  /** The views that replace `transform`, the views whose random numbers they have, and the steps whose draws are recorded. */
  readonly views?:
    | {
        readonly transforms: readonly CompiledTransform[];
        readonly randomOf: readonly number[];
        readonly draws: readonly DrawnName[];
      }
    | undefined;
}

/** All transforms that a decoder may run. */
export function transformsOf({ transform, covers, views }: DecodedTransforms): readonly CompiledTransform[] {
  return views?.transforms ?? covers ?? [transform];
}

/**
 * Scratch memory in bytes that is enough to transform every RGB image of up to `maxPixels` pixels. An image that is rotated by its
 * EXIF orientation needs more. A decoder also works with less memory; images that do not fit are then errors.
 */
export function scratchBytesFor(decoded: DecodedTransforms, maxPixels: number): number {
  return Math.max(...transformsOf(decoded).map((one) => scratchBytesOf(one, maxPixels)));
}

function scratchBytesOf(transform: CompiledTransform, maxPixels: number): number {
  if (!isRgb(transform.format)) return wideBytes(transform, maxPixels);
  const intermediate = intermediateBytes(transform, maxPixels);
  return roundUp(kernelBytes(transform) + CROP_STATE_BYTES + intermediate + ROW_ENDS_BYTES + maxPixels * 3);
}

/**
 * Scratch memory for images that are not 8-bit RGB: the decoded part, the picture before and after each pass, rows of floats as a
 * resize reads them, and floats between its two directions.
 */
function wideBytes(transform: CompiledTransform, maxPixels: number): number {
  const pixels = transform.steps.reduce((most, step) => {
    const sizes = everyStep([step]).map((part) => entryOf(part).largest?.(part) ?? { width: 0, height: 0 });
    return Math.max(most, ...sizes.map(({ width, height }) => width * height));
  }, maxPixels);
  const { channels, dtype } = transform.format;
  // A resize takes 8 rows at a time: of an image with one row, it makes seven copies.
  const middle = channels * (4 * pixels + WIDE_BLOCK_BYTES * (pixels + 8)) + RESIZE_TABLE_BYTES;
  const pictures = 2 + 2 * transform.steps.length;
  return roundUp(
    kernelBytes(transform) +
      CROP_STATE_BYTES +
      ROW_ENDS_BYTES +
      middle +
      pictures * pixels * channels * valueBytes(dtype),
  );
}

/** The tables of both axes for the largest resize (`kernels/exact-resize.ts`, `kernels/wide-resize.ts`). */
const RESIZE_TABLE_BYTES = 8 << 20;
/** Padding: up to 31 bytes at the end of each decoded row. */
const ROW_ENDS_BYTES = LONGEST_SIDE * 32;

/** Enough memory to resize an ordinary photo. The kernel gets more if there is more. */
const MIN_KERNEL_BYTES = scratchBytes({ sourceColumns: 8192, sourceRows: 8192, width: 1024, height: 512 });

/** The part of `bytes` of scratch memory that the kernel gets. Throws {@link OptionError} if `bytes` is too small to resize any photo. */
export function kernelBytesWithin(bytes: number, transforms: readonly CompiledTransform[]): number {
  const wanted = Math.max(...transforms.map(kernelBytes));
  if (bytes > MIN_KERNEL_BYTES) return Math.min(wanted, roundUp(Math.max(MIN_KERNEL_BYTES, bytes / 2)));
  throw new OptionError({}, `A decoder has ${bytes} bytes of scratch memory and needs more than ${MIN_KERNEL_BYTES}.`);
}

/** The kernel's working memory for any image, in bytes. It depends on how much images are reduced. */
function kernelBytes({ steps: list, outputShape }: CompiledTransform): number {
  const steps = everyStep(list);
  const sides = steps.flatMap((step) => entryOf(step).resizesTo?.(step) ?? LARGEST_SIDE);
  const bytes = scratchBytes({
    sourceColumns: LONGEST_SIDE,
    sourceRows: LONGEST_SIDE,
    width: steps.length === 1 ? (outputShape?.width ?? LARGEST_SIDE) : LARGEST_SIDE,
    height: Math.min(LARGEST_SIDE, ...sides),
    halfWidth: Math.max(1, ...steps.map((step) => entryOf(step).widestFilter?.(step) ?? 1)),
  });
  return roundUp(bytes);
}

/** Memory in bytes for the results of passes before the last one, with borders, and for the pictures of effects. */
function intermediateBytes(transform: CompiledTransform, maxPixels: number): number {
  let bytes = 0;
  let picture = maxPixels * 3;
  for (const step of transform.steps) {
    // It is drawn which of the inner steps run, and in which order.
    const parts = everyStep([step]);
    const added = Math.max(...parts.map((part) => entryOf(part).addsPixels?.(part) ?? 0));
    // The whole image with pixels around it, and the image itself.
    if (added > 0) bytes += 2 * picture + 3 * Math.min(added, LARGEST_SIDE ** 2);
    picture = Math.max(setsSize(step) ? 0 : picture, ...parts.map(largestBytes));
    for (const part of parts) {
      if (entryOf(part).isEffect === true) bytes += effectBytes(picture, entryOf(part).extraPictures);
      else if (largestBytes(part) > 0) bytes += 2 * picture;
    }
  }
  return becomesFloatsLast(transform) ? bytes + picture : bytes;
}

/** Whether every result of a step has a size that the step sets. */
function setsSize(step: PixelStep): boolean {
  const { largest, isEffect } = entryOf(step);
  const applies = !('p' in step) || step.p === 1;
  return largest !== undefined && isEffect !== true && applies;
}

/** Bytes of the largest picture that a step can make. 0 if it makes none that is larger than the picture before. */
function largestBytes(step: Step): number {
  const size = entryOf(step).largest?.(step);
  return size === undefined ? 0 : 3 * size.height * size.width;
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / 64) * 64;
}
