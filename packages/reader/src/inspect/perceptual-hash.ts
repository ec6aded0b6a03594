/** Perceptual hash: the hashes of images that look alike differ in few bits. */
import { range } from '@shardtool/base';
import { FREQUENCIES } from '../kernels/measure.js';

const BITS = 64;

/** The lowest frequencies, ordered from the lowest, without the mean brightness, which does not depend on the content. */
const CHOSEN = Uint8Array.from(
  range(FREQUENCIES ** 2)
    .slice(1)
    .sort((a, b) => squaredFrequency(a) - squaredFrequency(b) || a - b)
    .slice(0, BITS),
);

function squaredFrequency(index: number): number {
  const [down, across] = [Math.floor(index / FREQUENCIES), index % FREQUENCIES];
  return down * down + across * across;
}

const coefficients = new Float64Array(BITS);

/** The hash as two words of 32 bits. Each bit says whether one of the 64 lowest frequencies of the brightness, [down][across], is above their median. */
export function perceptualHash(frequencies: Float64Array): readonly [low: number, high: number] {
  for (let bit = 0; bit < BITS; bit++) coefficients[bit] = frequencies[CHOSEN[bit]!]!;
  const sorted = coefficients.toSorted();
  const median = (sorted[BITS / 2 - 1]! + sorted[BITS / 2]!) / 2;
  const words: [number, number] = [0, 0];
  for (let bit = 0; bit < BITS; bit++) {
    if (coefficients[bit]! > median) words[bit < 32 ? 0 : 1]! |= 1 << (bit & 31);
  }
  return [words[0] >>> 0, words[1] >>> 0];
}
