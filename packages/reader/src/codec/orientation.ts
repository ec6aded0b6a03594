/**
 * EXIF orientations (CIPA DC-008, tag 0x0112): how to rotate and mirror the stored image for display. Pixel (x, y) of the upright
 * image is the stored pixel (x, y), or (y, x) for orientations 5 to 8. Stored columns count from the right if the orientation
 * mirrors columns; stored rows count from the bottom if it mirrors rows.
 */
import type { Pixels, Rect, Size } from './codec.js';

/** The orientation of an image that is stored upright. */
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

/** The size of an image after its orientation is applied. */
export function turnedSize({ width, height }: Size, orientation: number): Size {
  return swapsSides(orientation) ? { width: height, height: width } : { width, height };
}

/** The rectangle of stored pixels for a rectangle of the upright image. `image` is the size of the stored image. */
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

/** Applies an orientation to stored pixels of `bytes` bytes. `turned` is the size of the result, which is written to `target` without gaps between rows. */
export function turnPixels(
  memory: Uint8Array,
  stored: Pixels,
  turned: Size,
  orientation: number,
  target: number,
  bytes = 3,
): void {
  if (bytes !== 3) {
    turnWide(memory, stored, turned, orientation, target, bytes);
    return;
  }
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

function turnWide(
  memory: Uint8Array,
  stored: Pixels,
  turned: Size,
  orientation: number,
  target: number,
  bytes: number,
): void {
  const { width, height } = turnedSize(turned, orientation);
  const column = mirrorsColumns(orientation) ? -bytes : bytes;
  const row = mirrorsRows(orientation) ? -stored.stride : stored.stride;
  const [stepX, stepY] = swapsSides(orientation) ? [row, column] : [column, row];
  let start = stored.offset;
  if (column < 0) start += (width - 1) * bytes;
  if (row < 0) start += (height - 1) * stored.stride;
  let to = target;
  for (let y = 0; y < turned.height; y++, start += stepY) {
    let from = start;
    for (let x = 0; x < turned.width; x++, from += stepX, to += bytes) {
      for (let byte = 0; byte < bytes; byte++) memory[to + byte] = memory[from + byte]!;
    }
  }
}
