import type { PixelDtype } from '../codec/pixel-format.js';
import type { Normalization } from '../kernels/resize.js';
import type { ErasingStep } from './parse-steps.js';

/** The dtype of the images of a batch. */
export type Dtype = 'uint8' | 'uint16' | 'int16' | 'float32' | 'float16';

/** Size of one value of a finished image, in bytes. */
export function valueBytes(dtype: Dtype): number {
  return { uint8: 1, uint16: 2, int16: 2, float16: 2, float32: 4 }[dtype];
}

/** Whether a dtype is one of the floating-point types. */
export function isFloat(dtype: Dtype): boolean {
  return dtype === 'float32' || dtype === 'float16';
}

const RANGES = { uint8: [0, 255], uint16: [0, 65_535], int16: [-32_768, 32_767] } as const;

/** Whether decoded pixels of this dtype can have the value. */
export function fits(value: number, dtype: PixelDtype): boolean {
  if (dtype === 'float32') return true;
  const [low, high] = RANGES[dtype];
  return Number.isInteger(value) && value >= low && value <= high;
}

/** Dtype, normalization and layout of the result, collected step by step while a transform is compiled. */
export interface ValueSettings {
  dtype: Dtype;
  /** The dtype of decoded values. */
  readonly stored: PixelDtype;
  /** Floats range from 0 to 1. If false: they have the range of the decoded values. */
  scaled: boolean;
  normalization: Normalization | null;
  layout: 'nhwc' | 'nchw' | null;
  /** Steps that erase finished values. */
  readonly erasing: ErasingStep[];
}
