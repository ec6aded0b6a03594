import type { Normalization } from '../kernels/resize.js';
import type { ErasingStep } from './parse-steps.js';

/** The dtype of the images of a batch. */
export type Dtype = 'uint8' | 'float32' | 'float16';

/** Size of one value of a finished image, in bytes. */
export function valueBytes(dtype: Dtype): number {
  return { uint8: 1, float16: 2, float32: 4 }[dtype];
}

/** Dtype, normalization and layout of the result, collected step by step while a transform is compiled. */
export interface ValueSettings {
  dtype: Dtype;
  /** Floats range from 0 to 1. If false: from 0 to 255. */
  scaled: boolean;
  normalization: Normalization | null;
  layout: 'nhwc' | 'nchw' | null;
  /** Steps that erase finished values. */
  readonly erasing: ErasingStep[];
}
