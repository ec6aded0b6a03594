/** What the resize kernels for pixels other than 8-bit RGB have in common. */
import type { Axis } from './taps.js';

/** Rows of pixels in memory: the address of the first one, and the number of bytes from one row to the next. */
interface PixelRows {
  readonly address: number;
  readonly stride: number;
}

/** One resize. `source` is the address of the pixel at column `lo` and row `lo` of the ranges of both axes. */
export interface PixelResize {
  readonly source: PixelRows;
  readonly target: PixelRows;
  readonly x: Axis;
  readonly y: Axis;
  readonly channels: number;
}

/** Allocates working memory: returns the address of a number of bytes, a multiple of 16. */
export type Allocate = (bytes: number) => number;

/** Resizes pixels of one dtype, with any number of channels. */
export interface PixelResizeKernel {
  resize(resize: PixelResize, allocate: Allocate): void;
}
