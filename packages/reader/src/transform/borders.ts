/** Borders that continue the image: its edge, or its mirror image. */
import type { Size } from '../codec/codec.js';
import type { Padding } from './crops.js';

/** `edge` repeats the last pixel, `reflect` mirrors without it, `symmetric` with it. */
export type BorderMode = 'edge' | 'reflect' | 'symmetric';

/**
 * Fills the border of an image of size `whole`, whose inner part is in place, from address `at` on. `bytes` is the size of a pixel. A border
 * that is wider than the image continues with its mirror images, as numpy's pad does.
 */
export function continueImage(
  memory: Uint8Array,
  at: number,
  { width, height }: Size,
  { left, top, right, bottom }: Padding,
  mode: BorderMode,
  bytes: number,
): void {
  const pitch = width * bytes;
  const inner = { width: width - left - right, height: height - top - bottom };
  for (let column = 0; column < width; column++) {
    if (column === left) column = width - right;
    if (column === width) break;
    const from = at + (left + sourceOf(column - left, inner.width, mode)) * bytes;
    const to = at + column * bytes;
    for (let row = top; row < height - bottom; row++) {
      for (let byte = 0; byte < bytes; byte++) memory[to + row * pitch + byte] = memory[from + row * pitch + byte]!;
    }
  }
  for (let row = 0; row < height; row++) {
    if (row === top) row = height - bottom;
    if (row === height) break;
    const from = at + (top + sourceOf(row - top, inner.height, mode)) * pitch;
    memory.copyWithin(at + row * pitch, from, from + pitch);
  }
}

/** The index within 0 to length - 1 that a border shows at `index` outside of it. */
function sourceOf(index: number, length: number, mode: BorderMode): number {
  if (mode === 'edge' || length === 1) return Math.max(0, Math.min(index, length - 1));
  const period = mode === 'reflect' ? 2 * (length - 1) : 2 * length;
  const within = ((index % period) + period) % period;
  return within < length ? within : period - within - (mode === 'reflect' ? 0 : 1);
}
