/** The measures of an image in `inspect`, computed with plain loops. */
import type { Measured } from '#reader/inspect/measure';

const INSPECTED_SIDE = 256;
const MARGIN = 3;
const PIXELS = INSPECTED_SIDE ** 2;
const light = new Uint8Array(PIXELS);
const histogram = new Uint32Array(256);

/** Measures `pixels`, uint8 [256, 256, 3]. */
export function measureReference(pixels: Uint8Array): Omit<Measured, 'crc32' | 'bytes' | 'warnings'> {
  const { sums, squares } = takeLight(pixels);
  const image = { values: light, side: INSPECTED_SIDE };
  let lightSum = 0;
  let entropy = 0;
  for (let value = 0; value < 256; value++) {
    const count = histogram[value]!;
    if (count === 0) continue;
    lightSum += value * count;
    entropy -= (count / PIXELS) * Math.log2(count / PIXELS);
  }
  return {
    hash: perceptualHash(image),
    innerHash: perceptualHash(image, MARGIN),
    brightness: lightSum / PIXELS,
    p5: percentile(0.05),
    p99: percentile(0.99),
    entropy: Math.max(0, entropy),
    sharpness: laplacianVariance(),
    sums,
    squares,
  };
}

/** Fills {@link light} (ITU-R BT.601, in 1/256) and {@link histogram}. */
function takeLight(pixels: Uint8Array): Pick<Measured, 'sums' | 'squares'> {
  histogram.fill(0);
  let [red, green, blue] = [0, 0, 0];
  let [red2, green2, blue2] = [0, 0, 0];
  for (let i = 0, at = 0; i < PIXELS; i++, at += 3) {
    const r = pixels[at]!;
    const g = pixels[at + 1]!;
    const b = pixels[at + 2]!;
    red += r;
    green += g;
    blue += b;
    // For 2^16 pixels these stay below 2^32.
    red2 += r * r;
    green2 += g * g;
    blue2 += b * b;
    const value = (77 * r + 150 * g + 29 * b + 128) >> 8;
    light[i] = value;
    histogram[value]!++;
  }
  return { sums: [red, green, blue], squares: [red2, green2, blue2] };
}

/** The light value that this share of the pixels does not exceed. */
function percentile(share: number): number {
  let seen = 0;
  for (let value = 0; value < 256; value++) {
    seen += histogram[value]!;
    if (seen >= share * PIXELS) return value;
  }
  return 255;
}

/** Variance of the four neighbours minus four times the pixel, over all pixels that have four. */
function laplacianVariance(): number {
  let sum = 0;
  let squares = 0;
  for (let y = 1; y < INSPECTED_SIDE - 1; y++) {
    for (let at = y * INSPECTED_SIDE + 1, end = at + INSPECTED_SIDE - 2; at < end; at++) {
      const bend =
        light[at - INSPECTED_SIDE]! + light[at + INSPECTED_SIDE]! + light[at - 1]! + light[at + 1]! - 4 * light[at]!;
      sum += bend;
      squares += bend * bend;
    }
  }
  const count = (INSPECTED_SIDE - 2) ** 2;
  return squares / count - (sum / count) ** 2;
}

/** Light of an image: one byte per pixel, `side` x `side`. */
interface Light {
  readonly values: Uint8Array;
  readonly side: number;
}

/** The image is first reduced to this size: finer details are lost when an image is compressed or resized. */
const CELLS = 32;
/** Number of frequencies that are used along each side. */
const FREQUENCIES = 10;
const BITS = 64;

/** cos((2x + 1) u pi / 2n), of the discrete cosine transform (DCT-II); [frequency][cell]. */
const COSINES = Float64Array.from({ length: FREQUENCIES * CELLS }, (_, i) => {
  const [frequency, cell] = [Math.floor(i / CELLS), i % CELLS];
  return Math.cos(((2 * cell + 1) * frequency * Math.PI) / (2 * CELLS)) * (frequency === 0 ? Math.SQRT1_2 : 1);
});

/** The lowest frequencies except the mean light, which does not depend on the content; the longest waves first. */
const CHOSEN = Uint8Array.from(
  Array.from({ length: FREQUENCIES ** 2 - 1 }, (_, i) => i + 1)
    .sort((a, b) => squared(a) - squared(b) || a - b)
    .slice(0, BITS),
);

function squared(place: number): number {
  const [down, across] = [Math.floor(place / FREQUENCIES), place % FREQUENCIES];
  return down * down + across * across;
}

const grid = new Float64Array(CELLS * CELLS);
const rows = new Float64Array(CELLS * FREQUENCIES);
const coefficients = new Float64Array(BITS);

/**
 * 64 bits, as two words: whether each of the 64 lowest frequencies of the light is above their median. `margin` pixels at each
 * side are omitted: the hash of an image without its margins is close to that of a cropped copy.
 */
function perceptualHash({ values, side }: Light, margin = 0): readonly [low: number, high: number] {
  meanCells(values, side, margin);
  for (let y = 0; y < CELLS; y++) {
    for (let frequency = 0; frequency < FREQUENCIES; frequency++) {
      let sum = 0;
      for (let x = 0; x < CELLS; x++) sum += grid[y * CELLS + x]! * COSINES[frequency * CELLS + x]!;
      rows[y * FREQUENCIES + frequency] = sum;
    }
  }
  for (let bit = 0; bit < BITS; bit++) {
    const [down, across] = [Math.floor(CHOSEN[bit]! / FREQUENCIES), CHOSEN[bit]! % FREQUENCIES];
    let sum = 0;
    for (let y = 0; y < CELLS; y++) sum += rows[y * FREQUENCIES + across]! * COSINES[down * CELLS + y]!;
    coefficients[bit] = sum;
  }
  const sorted = coefficients.toSorted();
  const median = (sorted[BITS / 2 - 1]! + sorted[BITS / 2]!) / 2;
  const words: [number, number] = [0, 0];
  for (let bit = 0; bit < BITS; bit++) {
    if (coefficients[bit]! > median) words[bit < 32 ? 0 : 1]! |= 1 << (bit & 31);
  }
  return [words[0] >>> 0, words[1] >>> 0];
}

/** Fills {@link grid} with means of the pixels within the margins. */
function meanCells(values: Uint8Array, side: number, margin: number): void {
  const inner = side - 2 * margin;
  const edge = (cell: number) => margin + Math.floor((cell * inner) / CELLS);
  for (let cellY = 0; cellY < CELLS; cellY++) {
    const [top, bottom] = [edge(cellY), edge(cellY + 1)];
    for (let cellX = 0; cellX < CELLS; cellX++) {
      const [left, right] = [edge(cellX), edge(cellX + 1)];
      let sum = 0;
      for (let y = top; y < bottom; y++) {
        for (let at = y * side + left, end = y * side + right; at < end; at++) sum += values[at]!;
      }
      grid[cellY * CELLS + cellX] = sum / ((bottom - top) * (right - left));
    }
  }
}
