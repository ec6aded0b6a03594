/** A piece of an archive in memory, in bytes and in 32-bit words: a checksum is up to 4 times as fast in words. */
export interface Window {
  readonly bytes: Buffer;
  readonly words: Int32Array;
}

/** The first `length` bytes of `buffer`, which begins on a multiple of 4. */
export function windowOn(buffer: Buffer, length: number): Window {
  return { bytes: buffer.subarray(0, length), words: new Int32Array(buffer.buffer, buffer.byteOffset, length >> 2) };
}
