/** What is measured of one image, and how it lies in the row of a batch: the workers write it over the pixels that it was made of. */
import { MeasureKernels } from '../kernels/measure.js';
import { perceptualHash } from './perceptual-hash.js';

/** Images are resized to so many pixels each way. */
export const INSPECTED_SIDE = 256;
/** Left out at each side for the second hash: a hundredth, and a little more. */
const MARGIN = 3;

/** What is measured of an image. Light is 0 (black) to 255. */
export interface Measured {
  /** Of the image as it is stored: its crc32 and length. */
  readonly crc32: number;
  readonly bytes: number;
  readonly hash: readonly [low: number, high: number];
  /** {@link hash} without the margins. */
  readonly innerHash: readonly [low: number, high: number];
  readonly brightness: number;
  /** 5 and 99 of 100 pixels are at most so light. */
  readonly p5: number;
  readonly p99: number;
  /** Of the light, in bits: 0 for one grey, 8 for all greys alike. */
  readonly entropy: number;
  /** Variance of the light's Laplacian: low where nothing is sharp. */
  readonly sharpness: number;
  /** How often the codec found something odd; {@link NOT_WHOLE} for an image that is not whole, although all pixels are there. */
  readonly warnings: number;
  /** Sums over the pixels of each channel, and of their squares. */
  readonly sums: readonly [number, number, number];
  readonly squares: readonly [number, number, number];
}

export const NOT_WHOLE = 0xffffffff;

const PIXELS = INSPECTED_SIDE ** 2;
const kernels = new MeasureKernels(INSPECTED_SIDE);

/** Measures `pixels`, uint8 [256, 256, 3]. */
export function measure(pixels: Uint8Array): Omit<Measured, 'crc32' | 'bytes' | 'warnings'> {
  const { sums, squares, counts, bends } = kernels.measure(pixels);
  let lightSum = 0;
  let entropy = 0;
  for (let value = 0; value < 256; value++) {
    const count = counts[value]!;
    if (count === 0) continue;
    lightSum += value * count;
    entropy -= (count / PIXELS) * Math.log2(count / PIXELS);
  }
  return {
    hash: perceptualHash(kernels.lowFrequencies(0)),
    // An image without its margins has a hash near that of a copy which was cropped.
    innerHash: perceptualHash(kernels.lowFrequencies(MARGIN)),
    brightness: lightSum / PIXELS,
    p5: percentile(counts, 0.05),
    p99: percentile(counts, 0.99),
    entropy: Math.max(0, entropy),
    sharpness: variance(bends, (INSPECTED_SIDE - 2) ** 2),
    sums,
    squares,
  };
}

/** The light that this share of the pixels does not exceed. */
function percentile(counts: Uint32Array, share: number): number {
  let seen = 0;
  for (let value = 0; value < 256; value++) {
    seen += counts[value]!;
    if (seen >= share * PIXELS) return value;
  }
  return 255;
}

function variance([sum, squares]: readonly [number, number], count: number): number {
  return squares / count - (sum / count) ** 2;
}

/** Writes what was measured over the first bytes of a row. */
export function putMeasured(row: Uint8Array, of: Measured): void {
  const view = new DataView(row.buffer, row.byteOffset, row.byteLength);
  const words = [of.crc32, ...of.hash, ...of.innerHash, of.warnings];
  words.forEach((word, i) => {
    view.setUint32(4 * i, word, true);
  });
  const numbers = [of.bytes, of.brightness, of.p5, of.p99, of.entropy, of.sharpness, ...of.sums, ...of.squares];
  numbers.forEach((value, i) => {
    view.setFloat64(4 * words.length + 8 * i, value, true);
  });
}

/** The inverse of {@link putMeasured}. */
export function takeMeasured(row: Uint8Array): Measured {
  const view = new DataView(row.buffer, row.byteOffset, row.byteLength);
  const word = (i: number) => view.getUint32(4 * i, true);
  const number = (i: number) => view.getFloat64(4 * 6 + 8 * i, true);
  return {
    crc32: word(0),
    hash: [word(1), word(2)],
    innerHash: [word(3), word(4)],
    warnings: word(5),
    bytes: number(0),
    brightness: number(1),
    p5: number(2),
    p99: number(3),
    entropy: number(4),
    sharpness: number(5),
    sums: [number(6), number(7), number(8)],
    squares: [number(9), number(10), number(11)],
  };
}
