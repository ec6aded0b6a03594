import type { ImageHeader, Rect, Reduction } from '../codec.js';

/** Groups are so wide, and rows of MCUs mostly so high. */
const COLUMN = 64;
const ROW = 16;

/**
 * From which share of the data on a small JPEG is worth making, by the image's size. What a region decode goes through is
 * everything down to the last row of the crop; what a small JPEG saves of it is the rest. It costs a copy of the image, the
 * header, the index and the splice, which weigh less the larger the image is. Measured on one core with photos of 500x375, 1024x768
 * and 2048x1536, of which crops of several widths and heights were decoded both ways, at full size and reduced.
 */
const LEAST_SAVED: readonly { readonly pixels: number; readonly share: number }[] = [
  { pixels: 400_000, share: 0.18 },
  { pixels: 1_600_000, share: 0.13 },
  { pixels: Number.POSITIVE_INFINITY, share: 0.08 },
];

/** Whether a small JPEG of a crop decodes faster than the region. `crop` is a part of the image at 1 / `reduction` of its size. */
export function isWorthSplicing({ width, height }: ImageHeader, crop: Rect, reduction: Reduction): boolean {
  const left = Math.floor((crop.x * reduction) / COLUMN) * COLUMN;
  const right = Math.min(width, Math.ceil(((crop.x + crop.width) * reduction) / COLUMN) * COLUMN);
  const top = Math.floor((crop.y * reduction) / ROW) * ROW;
  const bottom = Math.min(height, Math.ceil(((crop.y + crop.height) * reduction) / ROW) * ROW);
  const saved = 1 - ((right - left) * (bottom - top)) / (width * bottom);
  return saved >= LEAST_SAVED.find(({ pixels }) => width * height <= pixels)!.share;
}
