/** The weights of a resize as floating-point numbers, for images that are not 8-bit RGB. */
import { type Axis, axisWeights } from './taps.js';

/** Bits of the integer weights of bytes, as in Pillow (libImaging/Resample.c, PRECISION_BITS). */
const BYTE_WEIGHT_BITS = 22;

/** For each pixel of the result: its source pixels from `starts[i]` on, relative to `lo`, and their weights from `weights[i * taps]` on. */
export interface ExactTaps {
  readonly lo: number;
  readonly hi: number;
  readonly taps: number;
  readonly starts: Int32Array;
  readonly weights: Float64Array;
}

/** The weights of an axis, which add up to 1. For bytes they are integers in units of 2 ** -{@link BYTE_WEIGHT_BITS}, rounded as in Pillow. */
export function exactTaps(axis: Axis, isBytes: boolean): ExactTaps {
  const taps = axisWeights(axis);
  if (!isBytes) return taps;
  const unit = 2 ** BYTE_WEIGHT_BITS;
  const { weights } = taps;
  for (let i = 0; i < weights.length; i++) {
    const weight = weights[i]! * unit;
    weights[i] = Math.trunc(weight < 0 ? weight - 0.5 : weight + 0.5);
  }
  return taps;
}
