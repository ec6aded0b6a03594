/** The polynomial of crc32, bits reversed, without its highest term. */
const POLYNOMIAL = 0xedb88320;
/** 1 in the same notation. */
const ONE = 0x80000000;

/**
 * The crc32 of two runs of bytes, one behind the other, from the crc32 of each and the length of the second: what is
 * needed where the front of a file is written last. Appending n bytes multiplies the first by x^8n, modulo the
 * polynomial (zlib, crc32.c: crc32_combine).
 */
export function crc32Combine(first: number, second: number, secondBytes: number): number {
  let shift = ONE;
  // x^8, squared again and again.
  let power = ONE >>> 8;
  for (let left = secondBytes; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) shift = multiply(shift, power);
    power = multiply(power, power);
  }
  return (multiply(first, shift) ^ second) >>> 0;
}

/** The product of two polynomials over GF(2), modulo the polynomial of crc32. */
function multiply(a: number, b: number): number {
  let product = 0;
  let shifted = b;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) product ^= shifted;
    shifted = (shifted & 1) !== 0 ? (shifted >>> 1) ^ POLYNOMIAL : shifted >>> 1;
  }
  return product >>> 0;
}
