/** Measures one image. The workers return the result in the row of a batch, where it overwrites the pixels. */
import { MeasureKernels } from '../kernels/measure.js';
import { perceptualHash } from './perceptual-hash.js';

/** Side length to which images are resized, in pixels. */
export const INSPECTED_SIDE = 256;
/** Pixels to ignore at each side for the second hash: slightly more than 1 %. */
const MARGIN = 3;

/** The measures of an image. Brightness is 0 (black) to 255. */
export interface Measured {
  /** CRC32 of the image as stored. */
  readonly crc32: number;
  /** Length of the image as stored. */
  readonly bytes: number;
  /** Perceptual hash. */
  readonly hash: readonly [low: number, high: number];
  /** Perceptual hash of the image without its margins. */
  readonly innerHash: readonly [low: number, high: number];
  /** Mean brightness. */
  readonly brightness: number;
  /** 5th percentile of the brightness. */
  readonly p5: number;
  /** 99th percentile of the brightness. */
  readonly p99: number;
  /** Entropy of the brightness in bits: 0 for a single grey, 8 if all greys are equally frequent. */
  readonly entropy: number;
  /** Variance of the Laplacian of the brightness: low if nothing is sharp. */
  readonly sharpness: number;
  /** Number of decoder warnings. {@link NOT_WHOLE} for an image whose file is incomplete although all pixels are present. */
  readonly warnings: number;
  /** Sums of the values of each channel. */
  readonly sums: readonly [number, number, number];
  /** Sums of the squared values of each channel. */
  readonly squares: readonly [number, number, number];
}

export const NOT_WHOLE = 0xffffffff;

const PIXELS = INSPECTED_SIDE ** 2;
const kernels = new MeasureKernels(INSPECTED_SIDE);

/** Measures `pixels`, uint8 [256, 256, 3]. */
export function measure(pixels: Uint8Array): Omit<Measured, 'crc32' | 'bytes' | 'warnings'> {
  const { sums, squares, counts, laplacian } = kernels.measure(pixels);
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
    // The hash without margins is close to the hash of a cropped copy.
    innerHash: perceptualHash(kernels.lowFrequencies(MARGIN)),
    brightness: lightSum / PIXELS,
    p5: percentile(counts, 0.05),
    p99: percentile(counts, 0.99),
    entropy: Math.max(0, entropy),
    sharpness: variance(laplacian, (INSPECTED_SIDE - 2) ** 2),
    sums,
    squares,
  };
}

/** The brightness that this share of the pixels does not exceed. */
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

/** Writes the measures over the first bytes of a row. */
export function putMeasured(row: Uint8Array, measured: Measured): void {
  const view = new DataView(row.buffer, row.byteOffset, row.byteLength);
  const words = [measured.crc32, ...measured.hash, ...measured.innerHash, measured.warnings];
  words.forEach((word, i) => {
    view.setUint32(4 * i, word, true);
  });
  const { bytes, brightness, p5, p99, entropy, sharpness, sums, squares } = measured;
  const numbers = [bytes, brightness, p5, p99, entropy, sharpness, ...sums, ...squares];
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
