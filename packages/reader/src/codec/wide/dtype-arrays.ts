import { optionName, SampleDecodeError, sentence } from '@shardtool/base';
import type { PixelDtype } from '../pixel-format.js';

/** The array of values of each dtype. */
export const ARRAYS = { uint8: Uint8Array, uint16: Uint16Array, int16: Int16Array, float32: Float32Array };

/** The error for values that would lose something as the dtype `wanted`. */
export function otherDtype(dtype: string, wanted: PixelDtype): SampleDecodeError {
  const own = dtype in ARRAYS && dtype !== 'float32' ? `${dtype}, or to ` : '';
  return new SampleDecodeError(
    {},
    sentence`its values are ${dtype}, but the option ${optionName('pixelDtype')} is ${wanted}: set it to ${own}float32, which can hold all values`,
  );
}
