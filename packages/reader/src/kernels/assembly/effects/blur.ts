// Gaussian blur (torchvision.transforms.v2.functional `gaussian_blur_image`): first along rows, then along columns. Pixels
// beyond an edge are mirrored. Between the passes values have 6 fraction bits, so that the sum of two of them fits a signed word.
import { highWords, lowWords } from '../lanes';
import { addWide } from '../weigh';

/** Fraction bits of the results of the first pass. */
const KEPT_BITS: i32 = 6;
const PIXEL: usize = 6;

/** Widens a row of bytes to words. Writes whole steps of 16. */
function widen(source: usize, values: usize, target: usize): void {
  for (const end = source + values; source < end; source += 16, target += 32) {
    const bytes = v128.load(source);
    v128.store(target, i16x8.extend_low_i8x16_u(bytes));
    v128.store(target, i16x8.extend_high_i8x16_u(bytes), 16);
  }
}

@inline function copyPixel(target: usize, source: usize): void {
  store<u32>(target, load<u32>(source));
  store<u16>(target, load<u16>(source, 4), 4);
}

/** Mirrors `radius` pixels to the left and to the right of the words of a row. */
function mirrorEnds(row: usize, width: i32, radius: i32): void {
  const last = row + <usize>(width - 1) * PIXEL;
  for (let i = 1; i <= radius; i++) {
    const distance = <usize>i * PIXEL;
    copyPixel(row - distance, row + distance);
    copyPixel(last + distance, last - distance);
  }
}

@inline function sumOf(pair: usize, at: usize): v128 {
  return i16x8.add(v128.load(load<u32>(pair) + at), v128.load(load<u32>(pair, 4) + at));
}

/**
 * Computes weighted sums of words, 8 at a time. `addresses` holds the address of the center, then of the two words at distance 1, 2, ...
 * Weights are pairs of words: those of the center and of distance 1, and so on. Results are shifted right by `shift` bits, and are
 * words or bytes.
 */
@inline function weigh(addresses: usize, values: usize, weights: usize, pairs: i32, shift: i32, target: usize, toBytes: bool): void {
  const half = i32x4.splat(1 << (shift - 1));
  const first = v128.load32_splat(weights);
  const middle = load<u32>(addresses);
  const endOfWeights = weights + <usize>(pairs << 2);
  for (let at: usize = 0, end = values << 1; at < end; at += 16) {
    const centre = v128.load(middle + at);
    const nearest = sumOf(addresses + 4, at);
    let low = addWide(half, lowWords(centre, nearest), first);
    let high = addWide(half, highWords(centre, nearest), first);
    let address = addresses + 12;
    for (let w = weights + 4; w < endOfWeights; w += 4, address += 16) {
      const weight = v128.load32_splat(w);
      const a = sumOf(address, at);
      const b = sumOf(address + 8, at);
      low = addWide(low, lowWords(a, b), weight);
      high = addWide(high, highWords(a, b), weight);
    }
    const words = i16x8.narrow_i32x4_s(i32x4.shr_s(low, shift), i32x4.shr_s(high, shift));
    if (toBytes) {
      v128.store64_lane(target, i8x16.narrow_i16x8_u(words, words), 0);
      target += 8;
    } else {
      v128.store(target, words);
      target += 16;
    }
  }
}

/** The row for index `y`, mirrored if it is beyond an edge. */
@inline function mirrored(y: i32, height: i32): i32 {
  return y < 0 ? -y : y >= height ? 2 * (height - 1) - y : y;
}

/**
 * Blurs a picture. Weights are words: the center weight, then those at distance 1, 2, ... up to the radius, which is less than the width
 * or the height, then a 0 if their number would be odd. They add up to 1 << bits if all but the center count twice. `line` is the
 * start of a buffer for a row of words with radiusX + 1 extra pixels on each side. `ring` has room for 2 * radiusY + 1 rows of `pitch`
 * bytes, `addresses` for two more addresses than the wider filter has taps. Line and rows have 64 extra bytes at their end.
 */
export function blur(
  source: usize, width: i32, height: i32, target: usize, weightsX: usize, radiusX: i32, bitsX: i32,
  weightsY: usize, radiusY: i32, bitsY: i32, line: usize, ring: usize, pitch: usize, addresses: usize
): void {
  const values = <usize>(width * 3);
  const slots = 2 * radiusY + 1;
  const pairsX = (radiusX + 2) >> 1;
  const pairsY = (radiusY + 2) >> 1;
  for (let y = 0; y < height + radiusY; y++) {
    if (y < height) {
      widen(source + <usize>y * values, values, line);
      mirrorEnds(line, width, radiusX);
      store<u32>(addresses, line);
      for (let i = 1; i < 2 * pairsX; i++) {
        store<u32>(addresses + <usize>(i * 8 - 4), line - <usize>i * PIXEL);
        store<u32>(addresses + <usize>(i * 8), line + <usize>i * PIXEL);
      }
      weigh(addresses, values, weightsX, pairsX, bitsX - KEPT_BITS, ring + <usize>(y % slots) * pitch, false);
    }
    const finished = y - radiusY;
    if (finished < 0) continue;
    store<u32>(addresses, ring + <usize>(finished % slots) * pitch);
    for (let i = 1; i < 2 * pairsY; i++) {
      // Taps without weight use the center.
      const distance = i <= radiusY ? i : 0;
      const pair = addresses + <usize>(i * 8 - 4);
      store<u32>(pair, ring + <usize>(mirrored(finished - distance, height) % slots) * pitch);
      store<u32>(pair, ring + <usize>(mirrored(finished + distance, height) % slots) * pitch, 4);
    }
    weigh(addresses, values, weightsY, pairsY, bitsY + KEPT_BITS, target + <usize>finished * values, true);
  }
}
