import type { EffectKernels } from '../../kernels/effects.js';
import type { Size } from '../../transform/crops.js';
import type { DrawnMix } from '../../transform/mix.js';
import type { CompiledTransform } from '../../transform/transform.js';
import { valueBytes } from '../../transform/values.js';

/** The images of a batch in memory: `rows` of them from `address` on. */
export interface BatchImages extends Size {
  readonly address: number;
  readonly rows: number;
}

/** Mixes every row with the one before it, the first with the last. `spare` has room for a row. */
export function mixRows(
  kernels: EffectKernels,
  { name, weight, rect }: DrawnMix,
  images: BatchImages,
  { dtype, layout }: Pick<CompiledTransform, 'dtype' | 'layout'>,
  spare: number,
): void {
  const { address, rows, width, height } = images;
  const bytes = valueBytes(dtype);
  const rowBytes = width * height * 3 * bytes;
  kernels.copyRows(spare, address + (rows - 1) * rowBytes, rowBytes, 1, rowBytes);
  for (let row = rows - 1; row >= 0; row--) {
    const target = address + row * rowBytes;
    const other = row > 0 ? target - rowBytes : spare;
    if (name === 'mixup') {
      if (dtype === 'uint8') kernels.mixBytes(target, other, rowBytes, weight);
      else kernels.mixFloats(target, other, rowBytes, weight);
      continue;
    }
    if (rect === null) continue;
    const planes = layout === 'nchw' ? 3 : 1;
    const pixelBytes = layout === 'nchw' ? bytes : 3 * bytes;
    for (let plane = 0; plane < planes; plane++) {
      const at = (plane * width * height + rect.y * width + rect.x) * pixelBytes;
      kernels.copyRows(target + at, other + at, width * pixelBytes, rect.height, rect.width * pixelBytes);
    }
  }
}
