import type { Size } from '../../../codec/codec.js';
import type { EffectKernels } from '../../../kernels/effects.js';
import { type DrawnLabelMix, otherRow, type RowMix } from '../../../transform/mixes/mix.js';
import { type CompiledTransform, outputPixelBytes } from '../../../transform/transform.js';
import { valueBytes } from '../../../transform/values.js';

/** The images of a batch in memory: `rows` of them from `address` on. */
export interface BatchImages extends Size {
  readonly address: number;
  readonly rows: number;
  /** Whether a row has no image. Such a row is not mixed, nor is a row that would be mixed with it. */
  isBlank(row: number): boolean;
}

/** Mixes rows with each other, in place. `spare` has room for a row. */
export function mixRows(
  kernels: EffectKernels,
  { partner, rows: drawn }: DrawnLabelMix,
  images: BatchImages,
  format: Pick<CompiledTransform, 'dtype' | 'layout' | 'format'>,
  spare: number,
): void {
  const { address, rows, width, height } = images;
  const rowBytes = width * height * outputPixelBytes(format);
  const at = (row: number) => address + row * rowBytes;
  const mix = (row: number, other: number) => {
    if (images.isBlank(row) || images.isBlank(otherRow(partner, row, rows))) return;
    mixRow(kernels, drawn[row]!, images, format, at(row), other);
  };
  const keep = (row: number) => kernels.copyRows(spare, at(row), rowBytes, 1, rowBytes);
  if (partner === 'previous') {
    keep(rows - 1);
    for (let row = rows - 1; row > 0; row--) mix(row, at(row - 1));
    mix(0, spare);
    return;
  }
  for (let row = 0; row < rows >> 1; row++) {
    const other = rows - 1 - row;
    keep(row);
    mix(row, at(other));
    mix(other, spare);
  }
}

/** Mixes the row at `target` with the one at `other`. */
function mixRow(
  kernels: EffectKernels,
  { name, weight, rect }: RowMix,
  { width, height }: Size,
  { dtype, layout, format: { channels } }: Pick<CompiledTransform, 'dtype' | 'layout' | 'format'>,
  target: number,
  other: number,
): void {
  const bytes = valueBytes(dtype);
  if (name === 'mixup') {
    if (weight === 1) return;
    if (dtype === 'uint8') kernels.mixBytes(target, other, width * height * channels, weight);
    else kernels.mixFloats(target, other, width * height * channels * bytes, weight);
    return;
  }
  if (rect === null) return;
  const planes = layout === 'nchw' ? channels : 1;
  const pixelBytes = layout === 'nchw' ? bytes : channels * bytes;
  for (let plane = 0; plane < planes; plane++) {
    const at = (plane * width * height + rect.y * width + rect.x) * pixelBytes;
    kernels.copyRows(target + at, other + at, width * pixelBytes, rect.height, rect.width * pixelBytes);
  }
}
