/**
 * EXIF orientations (CIPA DC-008, tag 0x0112): how the stored picture is to be turned to be seen. Turned pixel (x, y) is
 * stored pixel (x, y), or (y, x) from 5 on, counted from the right where the stored columns are mirrored and from the
 * bottom where the stored rows are.
 */
import type { Size } from '../transform/crops.js';
import type { Pixels, Rect } from './codec.js';

/** Nothing is to be turned. */
export const UPRIGHT = 1;

function swapsSides(orientation: number): boolean {
  return orientation >= 5 && orientation <= 8;
}

function mirrorsColumns(orientation: number): boolean {
  return orientation === 2 || orientation === 3 || orientation === 7 || orientation === 8;
}

function mirrorsRows(orientation: number): boolean {
  return orientation === 3 || orientation === 4 || orientation === 6 || orientation === 7;
}

/** The size of an image after turning. */
export function turnedSize({ width, height }: Size, orientation: number): Size {
  return swapsSides(orientation) ? { width: height, height: width } : { width, height };
}

/** Which stored pixels make up a rectangle of the turned image. `image` is the stored image's size. */
export function storedRect(rect: Rect, image: Size, orientation: number): Rect {
  const { x, y, width, height } = swapsSides(orientation)
    ? { x: rect.y, y: rect.x, width: rect.height, height: rect.width }
    : rect;
  return {
    x: mirrorsColumns(orientation) ? image.width - x - width : x,
    y: mirrorsRows(orientation) ? image.height - y - height : y,
    width,
    height,
  };
}

/** Turns stored RGB pixels; `turned` is the size of the result, which goes to `target` without gaps between rows. */
export function turnPixels(
  memory: Uint8Array,
  stored: Pixels,
  turned: Size,
  orientation: number,
  target: number,
): void {
  const { width, height } = turnedSize(turned, orientation);
  const column = mirrorsColumns(orientation) ? -3 : 3;
  const row = mirrorsRows(orientation) ? -stored.stride : stored.stride;
  const [stepX, stepY] = swapsSides(orientation) ? [row, column] : [column, row];
  let start = stored.offset;
  if (column < 0) start += (width - 1) * 3;
  if (row < 0) start += (height - 1) * stored.stride;
  let to = target;
  for (let y = 0; y < turned.height; y++, start += stepY) {
    let from = start;
    for (let x = 0; x < turned.width; x++, from += stepX, to += 3) {
      memory[to] = memory[from]!;
      memory[to + 1] = memory[from + 1]!;
      memory[to + 2] = memory[from + 2]!;
    }
  }
}
