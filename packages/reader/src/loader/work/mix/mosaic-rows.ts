import type { Size } from '../../../codec/codec.js';
import type { EffectKernels } from '../../../kernels/effects.js';
import { type DrawnMosaic, MOSAIC_PARTS, type MosaicPart } from '../../../transform/mixes/mosaic.js';

/** The images or masks of a batch in memory, one after another from `address` on. */
export interface RowPixels extends Size {
  readonly address: number;
  /** Number of planes of a row: the channels with the layout nchw, otherwise 1. */
  readonly planes: number;
  /** Bytes of a pixel in a plane. */
  readonly pixelBytes: number;
}

/**
 * Makes the mosaics of a batch, in place. A row takes its parts from itself and the three rows after it in the order, so only the first three
 * rows, which the last ones need, are copied before. `spare` has room for them.
 */
export function mosaicRows(kernels: EffectKernels, drawn: DrawnMosaic, pixels: RowPixels, spare: number): void {
  const { order, rows } = drawn;
  const { address, width, height, planes, pixelBytes } = pixels;
  const rowBytes = width * height * planes * pixelBytes;
  const kept = order.slice(0, MOSAIC_PARTS - 1);
  for (const [i, row] of kept.entries())
    kernels.copyRows(spare + i * rowBytes, address + row * rowBytes, rowBytes, 1, rowBytes);
  const places = new Map(order.map((row, at) => [row, at]));
  for (const [at, row] of order.entries()) {
    const target = address + row * rowBytes;
    for (const part of rows[row]!.parts) {
      const isOverwritten = places.get(part.row)! < at || (part.row === row && part !== rows[row]!.parts[0]);
      const source = isOverwritten ? spare + kept.indexOf(part.row) * rowBytes : address + part.row * rowBytes;
      copyPart(kernels, part, pixels, source, target);
    }
  }
}

/** Copies a part of the row at `source`. Within a row it moves up or to the left, so that no byte is overwritten before it is read. */
function copyPart(
  kernels: EffectKernels,
  { from, to }: MosaicPart,
  { width, height, planes, pixelBytes }: RowPixels,
  source: number,
  target: number,
): void {
  for (let plane = 0; plane < planes; plane++) {
    const start = plane * width * height;
    kernels.copyRows(
      target + (start + to.y * width + to.x) * pixelBytes,
      source + (start + from.y * width + from.x) * pixelBytes,
      width * pixelBytes,
      to.height,
      to.width * pixelBytes,
    );
  }
}
