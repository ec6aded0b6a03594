/**
 * Tables of values for bytes, for results that no kernel computes: half-precision floats (IEEE 754 binary16), of which
 * there are only 256 a channel.
 */
import type { Normalization } from './resize.js';

const words = new Uint32Array(1);
const floats = new Float32Array(words.buffer);

/** The bits of the nearest half-precision float, ties to even; beyond 65,504 infinity. */
export function halfFloatBits(value: number): number {
  floats[0] = value;
  const bits = words[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  // Below 2^-14 there are no more bits than 2^-24: adding 1/2 rounds there, since a float32 of 1/2 has steps of 2^-24.
  if (magnitude < 0x38800000) {
    floats[0] = Math.fround(Math.abs(value) + 0.5);
    return sign | (words[0]! - 0x3f000000);
  }
  const odd = (magnitude >>> 13) & 1;
  return sign | ((magnitude - 0x38000000 + 0xfff + odd) >>> 13);
}

/** [3, 256] half-precision floats: (byte / 255 - mean) / std per channel, computed as the float32 kernels do. */
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
