/** Where torchvision v2's crops and resizes lie. Formulas are those of torchvision.transforms.v2, so that numbers agree. */
import type { Rect } from '../codec/codec.js';
import type { Random } from './random.js';

/** The resize kernel makes images of up to this many pixels a side. */
export const LARGEST_SIDE = 4096;

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** A size as steps have it: one number for a square, or [height, width]. */
export function asSize(size: number | readonly [number, number]): Size {
  return typeof size === 'number' ? { width: size, height: size } : { width: size[1], height: size[0] };
}

/**
 * The size after `resize` (v2.functional `_compute_resized_output_size`): the shorter side becomes `size`, unless the
 * longer one would become more than `maxSize`; without `size` the longer side becomes `maxSize`.
 */
export function resizedSize(
  image: Size,
  size: number | readonly [number, number] | undefined,
  maxSize: number | undefined,
): Size {
  if (typeof size === 'object') return { height: size[0], width: size[1] };
  const short = Math.min(image.width, image.height);
  const long = Math.max(image.width, image.height);
  if (size === undefined) {
    const least = Math.max(1, Math.trunc((maxSize! * short) / long));
    return image.width <= image.height ? { width: least, height: maxSize! } : { width: maxSize!, height: least };
  }
  let newShort = size;
  let newLong = Math.trunc((size * long) / short);
  if (maxSize !== undefined && newLong > maxSize) {
    newShort = Math.max(1, Math.trunc((maxSize * newShort) / newLong));
    newLong = maxSize;
  }
  return image.width <= image.height ? { width: newShort, height: newLong } : { width: newLong, height: newShort };
}

/**
 * The size after `cover` resizes, before it crops: the least of the image's shape that is nowhere smaller than the crop; the
 * side that is over is rounded down, as `resize` rounds.
 */
export function coveringSize(image: Size, crop: Size): Size {
  const isWider = image.width * crop.height >= image.height * crop.width;
  return isWider
    ? { width: Math.floor((image.width * crop.height) / image.height), height: crop.height }
    : { width: crop.width, height: Math.floor((image.height * crop.width) / image.width) };
}

/** The crop of `centerCrop`. Where the image is smaller, it lies partly outside (v2.functional `center_crop`). */
export function centerCropRect(image: Size, crop: Size): Rect {
  return {
    x: centered(image.width, crop.width),
    y: centered(image.height, crop.height),
    width: crop.width,
    height: crop.height,
  };
}

function centered(image: number, crop: number): number {
  return crop > image ? 0 - Math.floor((crop - image) / 2) : roundHalfEven((image - crop) / 2);
}

/** Pixels around an image. */
export interface Padding {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** Null where the image, padding included, is smaller than the crop: torchvision raises there. */
export function randomCropRect(
  image: Size,
  crop: Size,
  padding: Padding,
  padIfNeeded: boolean,
  random: Random,
): Rect | null {
  // v2.RandomCrop pads both sides by all that is missing.
  const padded = {
    width: image.width + padding.left + padding.right,
    height: image.height + padding.top + padding.bottom,
  };
  const extraX = padIfNeeded ? Math.max(0, crop.width - padded.width) : 0;
  const extraY = padIfNeeded ? Math.max(0, crop.height - padded.height) : 0;
  const roomX = padded.width + 2 * extraX - crop.width;
  const roomY = padded.height + 2 * extraY - crop.height;
  if (roomX < 0 || roomY < 0) return null;
  const y = roomY > 0 ? integerBelow(roomY + 1, random) : 0;
  const x = roomX > 0 ? integerBelow(roomX + 1, random) : 0;
  return { x: x - padding.left - extraX, y: y - padding.top - extraY, width: crop.width, height: crop.height };
}

/** The part that `randomResizedCrop` takes (v2.RandomResizedCrop `make_params`). */
export function randomResizedCropRect(
  image: Size,
  scale: readonly [number, number],
  ratio: readonly [number, number],
  random: Random,
): Rect {
  const area = image.width * image.height;
  const logLow = Math.log(ratio[0]);
  const logHigh = Math.log(ratio[1]);
  for (let attempt = 0; attempt < 10; attempt++) {
    const target = area * (scale[0] + (scale[1] - scale[0]) * random.next());
    const aspect = Math.exp(logLow + (logHigh - logLow) * random.next());
    const width = roundHalfEven(Math.sqrt(target * aspect));
    const height = roundHalfEven(Math.sqrt(target / aspect));
    if (width > 0 && width <= image.width && height > 0 && height <= image.height) {
      const y = integerBelow(image.height - height + 1, random);
      const x = integerBelow(image.width - width + 1, random);
      return { x, y, width, height };
    }
  }
  return largestCenteredRect(image, ratio);
}

/** The fallback of `randomResizedCrop`: all of the image that has an allowed ratio. */
function largestCenteredRect(image: Size, ratio: readonly [number, number]): Rect {
  const own = image.width / image.height;
  const width = own > ratio[1] ? Math.max(1, roundHalfEven(image.height * ratio[1])) : image.width;
  const height = own < ratio[0] ? Math.max(1, roundHalfEven(image.width / ratio[0])) : image.height;
  return { x: Math.floor((image.width - width) / 2), y: Math.floor((image.height - height) / 2), width, height };
}

/** A uniform integer of 0 to n - 1. */
function integerBelow(n: number, random: Random): number {
  return Math.floor(random.next() * n);
}

/** Python's round(). */
export function roundHalfEven(value: number): number {
  const down = Math.floor(value);
  const rest = value - down;
  return rest < 0.5 || (rest === 0.5 && down % 2 === 0) ? down : down + 1;
}
