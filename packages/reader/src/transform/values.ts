import type { Normalization } from '../kernels/resize.js';
import type { ErasingStep } from './parse-steps.js';

/** What values the images of a batch have. */
export type Dtype = 'uint8' | 'float32' | 'float16';

/** Bytes of one value of a finished image. */
export function valueBytes(dtype: Dtype): number {
  return { uint8: 1, float16: 2, float32: 4 }[dtype];
}

/** What values become, while the steps that say so are gone through. */
export interface ValuesUnderWay {
  dtype: Dtype;
  /** Floats are 0 to 1. */
  scaled: boolean;
  normalization: Normalization | null;
  layout: 'nhwc' | 'nchw' | null;
  /** What is erased of the finished values. */
  readonly erasing: ErasingStep[];
}
