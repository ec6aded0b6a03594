/** Positions and sizes of crops and resizes. The formulas are those of torchvision.transforms.v2, so that results agree. */
import type { Rect, Size } from '../codec/codec.js';
import { integerBelow, type Random } from './random.js';

/** Largest side of an image that the resize kernel can make, in pixels. */
export const LARGEST_SIDE = 4096;

/** Converts the size of a step (one number for a square, or [height, width]) to a Size. */
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
 * The size to which `cover` resizes before it crops: the smallest size with the image's aspect ratio that covers the crop. The
 * side that exceeds the crop is rounded down, as in `resize`.
 */
export function coveringSize(image: Size, crop: Size): Size {
  const isWider = image.width * crop.height >= image.height * crop.width;
  return isWider
    ? { width: Math.floor((image.width * crop.height) / image.height), height: crop.height }
    : { width: crop.width, height: Math.floor((image.height * crop.width) / image.width) };
}

/** The crop of `centerCrop` (v2.functional `center_crop`). If the image is smaller, the crop extends beyond it. */
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

/** The crop of `randomCrop`. Null if the image with its padding is smaller than the crop; torchvision raises then. */
export function randomCropRect(
  image: Size,
  crop: Size,
  padding: Padding,
  padIfNeeded: boolean,
  random: Random,
): Rect | null {
  // v2.RandomCrop pads both sides by the whole difference.
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

/** The crop of `randomResizedCrop` (v2.RandomResizedCrop `make_params`). */
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

/** The fallback of `randomResizedCrop`: the largest centered crop with an allowed aspect ratio. */
function largestCenteredRect(image: Size, ratio: readonly [number, number]): Rect {
  const aspect = image.width / image.height;
  const width = aspect > ratio[1] ? Math.max(1, roundHalfEven(image.height * ratio[1])) : image.width;
  const height = aspect < ratio[0] ? Math.max(1, roundHalfEven(image.width / ratio[0])) : image.height;
  return { x: Math.floor((image.width - width) / 2), y: Math.floor((image.height - height) / 2), width, height };
}

/** Rounds to the nearest integer, and halves to the even one, as Python's round() does. */
export function roundHalfEven(value: number): number {
  const down = Math.floor(value);
  const rest = value - down;
  return rest < 0.5 || (rest === 0.5 && down % 2 === 0) ? down : down + 1;
}
