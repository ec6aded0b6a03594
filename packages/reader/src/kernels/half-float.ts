/**
 * Half-precision floats (IEEE 754 binary16). No kernel computes them; they are looked up, because each channel has only 256 different
 * values.
 */
import type { Normalization } from './resize.js';

const words = new Uint32Array(1);
const floats = new Float32Array(words.buffer);

/** The bits of the nearest half-precision float, ties to even. Values beyond 65,504 become infinity. */
export function halfFloatBits(value: number): number {
  floats[0] = value;
  const bits = words[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  // Values below 2^-14 are multiples of 2^-24. Adding 1/2 rounds to these, because a float32 near 1/2 has steps of 2^-24.
  if (magnitude < 0x38800000) {
    floats[0] = Math.fround(Math.abs(value) + 0.5);
    return sign | (words[0]! - 0x3f000000);
  }
  const odd = (magnitude >>> 13) & 1;
  return sign | ((magnitude - 0x38000000 + 0xfff + odd) >>> 13);
}

/** The table of half-precision floats, [3, 256]: (byte / 255 - mean) / std per channel, computed as in the float32 kernels. */
export function halfFloatTable({ mean, std }: Normalization): Uint16Array {
  const table = new Uint16Array(3 * 256);
  for (let channel = 0; channel < 3; channel++) {
    const scale = Math.fround(1 / (255 * std[channel]!));
    const bias = Math.fround(-mean[channel]! / std[channel]!);
    for (let byte = 0; byte < 256; byte++) {
      table[channel * 256 + byte] = halfFloatBits(Math.fround(Math.fround(byte * scale) + bias));
    }
  }
  return table;
}

/** The value of half-precision bits. */
export function halfFloatValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
