import type { Dtype } from './values.js';

/** Pixels in an array of their dtype. float16, for which JavaScript has no array, is stored as bytes, two per value. */
export type PixelValues<Memory extends ArrayBufferLike = ArrayBufferLike> =
  | Uint8Array<Memory>
  | Uint16Array<Memory>
  | Int16Array<Memory>
  | Float32Array<Memory>;

/** The bytes as an array of the dtype, over the same memory. */
export function pixelValues(bytes: Uint8Array, dtype: Dtype): PixelValues {
  const { buffer, byteOffset, byteLength } = bytes;
  if (dtype === 'float32') return new Float32Array(buffer, byteOffset, byteLength / 4);
  if (dtype === 'uint16') return new Uint16Array(buffer, byteOffset, byteLength / 2);
  return dtype === 'int16' ? new Int16Array(buffer, byteOffset, byteLength / 2) : bytes;
}
