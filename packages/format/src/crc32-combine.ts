/** The polynomial of crc32, bits reversed, without its highest term. */
const POLYNOMIAL = 0xedb88320;
/** 1 in the same notation. */
const ONE = 0x80000000;
/** POWERS[k] is x^(8 * 2^k), modulo the polynomial: by how much 2^k bytes shift. */
const POWERS = powersOfByte(53);

/**
 * The crc32 of two runs of bytes, one behind the other, from the crc32 of each and the length of the second: what is
 * needed where the front of a file is written last. Appending n bytes multiplies the first by x^8n, modulo the
 * polynomial (zlib, crc32.c: crc32_combine).
 */
export function crc32Combine(first: number, second: number, secondBytes: number): number {
  let shifted = first;
  for (let left = secondBytes, k = 0; left > 0; left = Math.floor(left / 2), k++) {
    if (left % 2 === 1) shifted = multiply(shifted, POWERS[k]!);
  }
  return (shifted ^ second) >>> 0;
}

function powersOfByte(count: number): readonly number[] {
  const powers = [ONE >>> 8];
  while (powers.length < count) powers.push(multiply(powers.at(-1)!, powers.at(-1)!));
  return powers;
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
