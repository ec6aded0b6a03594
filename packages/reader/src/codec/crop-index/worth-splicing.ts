import type { ImageHeader, Rect, Reduction } from '../codec.js';

/** Width of a group of MCUs, and usual height of a row of MCUs, in pixels. */
const COLUMN = 64;
const ROW = 16;

/**
 * Smallest share of the data that a small JPEG must save to be worth making, by number of pixels of the image. A region decode
 * processes all data down to the last row of the crop; a small JPEG skips those outside the crop. It costs a copy of the image, its
 * header, the index and the splice, which matter less for larger images. Measured on one core with photos of 500x375, 1024x768 and
 * 2048x1536: crops of several widths and heights were decoded both ways, at full size and reduced.
 */
const MIN_SAVED: readonly { readonly pixels: number; readonly share: number }[] = [
  { pixels: 400_000, share: 0.18 },
  { pixels: 1_600_000, share: 0.13 },
  { pixels: Number.POSITIVE_INFINITY, share: 0.08 },
];

/**
 * Whether a small JPEG of a crop decodes faster than a region decode. `crop` refers to the image at 1 / `reduction` of
 * its size.
 */
export function isWorthSplicing(image: ImageHeader, crop: Rect, reduction: Reduction): boolean {
  const { region, spliced } = decodeCosts(image, crop, reduction);
  return spliced <= region;
}

/** Cost of decoding a crop with a crop index, in pixels of a region decode. */
export function cropCost(image: ImageHeader, crop: Rect, reduction: Reduction): number {
  const { region, spliced } = decodeCosts(image, crop, reduction);
  return Math.min(region, spliced);
}

/** The pixels that a region decode processes, and those of a small JPEG plus what making it costs. */
function decodeCosts({ width, height }: ImageHeader, crop: Rect, reduction: Reduction) {
  const left = Math.floor((crop.x * reduction) / COLUMN) * COLUMN;
  const right = Math.min(width, Math.ceil(((crop.x + crop.width) * reduction) / COLUMN) * COLUMN);
  const top = Math.floor((crop.y * reduction) / ROW) * ROW;
  const bottom = Math.min(height, Math.ceil(((crop.y + crop.height) * reduction) / ROW) * ROW);
  const region = width * bottom;
  const share = MIN_SAVED.find(({ pixels }) => width * height <= pixels)!.share;
  return { region, spliced: (right - left) * (bottom - top) + share * region };
}
