import { range } from '@shardtool/base';
import type { PastedRow } from '../../../annotations/paste-objects.js';
import type { EffectKernels } from '../../../kernels/effects.js';
import type { RowPixels } from './mosaic-rows.js';

/** Pastes pixels of the row before into each row, in place; for the first row, of the last one. `spare` has room for a row. */
export function pasteRows(
  kernels: EffectKernels,
  pasted: readonly PastedRow[],
  pixels: RowPixels,
  spare: number,
): void {
  const { address, width, height, planes, pixelBytes } = pixels;
  const rowBytes = width * height * planes * pixelBytes;
  const last = pasted.length - 1;
  kernels.copyRows(spare, address + last * rowBytes, rowBytes, 1, rowBytes);
  // From the last to the first, so that the row before has not changed yet.
  for (const row of range(pasted.length).reverse()) {
    const target = address + row * rowBytes;
    const source = row === 0 ? spare : target - rowBytes;
    for (const { x, y, length } of pasted[row]!.runs) {
      for (let plane = 0; plane < planes; plane++) {
        const at = ((plane * height + y) * width + x) * pixelBytes;
        kernels.copyRows(target + at, source + at, rowBytes, 1, length * pixelBytes);
      }
    }
  }
}
