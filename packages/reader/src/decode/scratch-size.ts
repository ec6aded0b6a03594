import { OptionError } from '@shardtool/base';
import { CROP_STATE_BYTES } from '../kernels/crop-index.js';
import { scratchBytes } from '../kernels/resize.js';
import { LARGEST_SIDE } from '../transform/crops.js';
import { entryOf } from '../transform/parse-steps.js';
import { becomesFloatsLast, type CompiledTransform } from '../transform/transform.js';
import { effectBytes } from './run-effects.js';

/** What a decoder does: one transform, or one for each size of a batch. */
export interface DecodedTransforms {
  readonly transform: CompiledTransform;
  /** By the number of a batch's size, what takes the place of `transform`: they differ in nothing but size. */
  readonly covers?: readonly CompiledTransform[] | undefined;
}

/**
 * Bytes of scratch with which every RGB image of up to `maxPixels` pixels can be transformed; one that is turned needs
 * more. A decoder works with less: images that do not fit are errors then.
 */
export function scratchBytesFor({ transform, covers }: DecodedTransforms, maxPixels: number): number {
  return Math.max(...(covers ?? [transform]).map((one) => scratchBytesOf(one, maxPixels)));
}

function scratchBytesOf(transform: CompiledTransform, maxPixels: number): number {
  const intermediate = intermediateBytes(transform, maxPixels);
  return roundUp(kernelBytes(transform) + CROP_STATE_BYTES + intermediate + ROW_ENDS_BYTES + maxPixels * 3);
}

/** JPEG's limit. */
const LONGEST_SIDE = 65_535;
/** Up to 31 bytes at the end of each decoded row. */
const ROW_ENDS_BYTES = LONGEST_SIDE * 32;

/** Enough to resize an ordinary photo; the kernel gets more where there is. */
const LEAST_KERNEL_BYTES = scratchBytes({ sourceColumns: 8192, sourceRows: 8192, width: 1024, height: 512 });

/** What the kernel gets of so many bytes of scratch. Throws {@link OptionError} where no photo could be resized with them. */
export function kernelBytesWithin(bytes: number, transforms: readonly CompiledTransform[]): number {
  const wanted = Math.max(...transforms.map(kernelBytes));
  if (bytes > LEAST_KERNEL_BYTES) return Math.min(wanted, roundUp(Math.max(LEAST_KERNEL_BYTES, bytes / 2)));
  throw new OptionError({}, `A decoder has ${bytes} bytes of scratch and needs more than ${LEAST_KERNEL_BYTES}.`);
}

/** The kernel's working memory for any image, which depends on how far it can be reduced. */
function kernelBytes({ steps, outputShape }: CompiledTransform): number {
  const sides = steps.flatMap((step) => entryOf(step).resizesTo?.(step) ?? LARGEST_SIDE);
  const bytes = scratchBytes({
    sourceColumns: LONGEST_SIDE,
    sourceRows: LONGEST_SIDE,
    width: steps.length === 1 ? (outputShape?.width ?? LARGEST_SIDE) : LARGEST_SIDE,
    height: Math.min(LARGEST_SIDE, ...sides),
  });
  return roundUp(bytes);
}

/** What passes between the first and the last may leave, borders included, and what effects work on. */
function intermediateBytes(transform: CompiledTransform, maxPixels: number): number {
  let bytes = 0;
  let picture = maxPixels * 3;
  for (const step of transform.steps) {
    const { largest, isEffect } = entryOf(step);
    const size = largest?.(step);
    const largestBytes = size === undefined ? 0 : 3 * size.height * size.width;
    if (isEffect === true) {
      picture = Math.max(picture, largestBytes);
      bytes += effectBytes(picture);
    } else if (size !== undefined) {
      picture = largestBytes;
      bytes += 2 * picture;
    }
  }
  return becomesFloatsLast(transform) ? bytes + picture : bytes;
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / 64) * 64;
}
