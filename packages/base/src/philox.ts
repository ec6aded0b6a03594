/**
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random words as a
 * pure function of a counter and a key, so that any position of any sequence can be computed directly.
 */

const WORDS = new Uint32Array(4);

/** Writes the four words of counter (c0, c1, c2, c3) under key (k0, k1) into `out`. All are taken as 32 bits. */
export function philox(
  c0: number,
  c1: number,
  c2: number,
  c3: number,
  k0: number,
  k1: number,
  out: Uint32Array,
): Uint32Array {
  for (let round = 0; round < 10; round++) {
    const high0 = multiplyHigh(0xd2511f53, c0);
    const low0 = Math.imul(0xd2511f53, c0);
    const high1 = multiplyHigh(0xcd9e8d57, c2);
    const low1 = Math.imul(0xcd9e8d57, c2);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 = (k0 + 0x9e3779b9) | 0;
    k1 = (k1 + 0xbb67ae85) | 0;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
  return out;
}

/** The upper 32 bits of the product of two unsigned 32-bit numbers; also floor(word * n / 2^32), exactly. */
export function multiplyHigh(a: number, b: number): number {
  const a0 = a & 0xffff;
  const a1 = a >>> 16;
  const b0 = b & 0xffff;
  const b1 = b >>> 16;
  const middle = (Math.imul(a1, b0) + (Math.imul(a0, b0) >>> 16)) >>> 0;
  const carry = (Math.imul(a0, b1) + (middle & 0xffff)) >>> 0;
  return (Math.imul(a1, b1) + (middle >>> 16) + (carry >>> 16)) >>> 0;
}

/**
 * Shuffles the first `length` values in place (Fisher-Yates from the front): draw i is word i mod 4 of counter
 * (i / 4, block, stream, epoch) under the key `seed` (0 to 2^53 - 1), and swaps i with floor(draw * (i + 1) / 2^32).
 */
export function shuffle(
  values: Uint32Array | Float64Array,
  length: number,
  seed: number,
  epoch: number,
  stream: number,
  block: number,
): void {
  const k0 = (seed % 2 ** 32) | 0;
  const k1 = Math.floor(seed / 2 ** 32) | 0;
  for (let i = 0; i < length; i++) {
    if ((i & 3) === 0) philox(i >>> 2, block | 0, stream | 0, epoch | 0, k0, k1, WORDS);
    const j = multiplyHigh(WORDS[i & 3]!, i + 1);
    const swapped = values[i]!;
    values[i] = values[j]!;
    values[j] = swapped;
  }
}
