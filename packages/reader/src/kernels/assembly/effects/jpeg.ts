// What JPEG compression changes in a picture, with the integers of libjpeg-turbo (jccolor.c, jcsample.c, jfdctint.c, jidctint.c, jdsample.c,
// jdcolor.c): YCbCr with 4:2:0 chroma, the accurate integer DCT ("islow"), and triangle ("fancy") upsampling. Entropy coding loses nothing,
// so it is left out.
//
// Samples and coefficients have 16 bits, as in the SIMD code of libjpeg-turbo: no value of a block of bytes is larger. Products have 32 bits.
// Products of two factors are sums of pairs (i32x4.dot_i16x8_s), so each output of a rotation needs one instruction per four values.
import { highBytes, highWords, lowBytes, lowWords } from '../lanes';

/** A block is 8 rows of 8 words. Rows are this many bytes apart. */
const ROW: usize = 16;

/** Two factors for the pairs of `dot`. */
@inline function pair(first: i32, second: i32): v128 {
  return i32x4.splat((second << 16) | (first & 0xffff));
}

/** first * a + second * b of four pairs of words. */
@inline function dot(pairs: v128, first: i32, second: i32): v128 {
  return i32x4.dot_i16x8_s(pairs, pair(first, second));
}

/** Divides by 2^bits, rounded. */
@inline function rounded(value: v128, bits: i32): v128 {
  return i32x4.shr_s(i32x4.add(value, i32x4.splat(1 << (bits - 1))), bits);
}

/** The same for eight values, as words. */
@inline function roundedWords(low: v128, high: v128, bits: i32): v128 {
  return i16x8.narrow_i32x4_s(rounded(low, bits), rounded(high, bits));
}

/** The forward transform of the columns of a block. The first pass keeps two more bits (`up`), the second removes them. */
@inline function forward(block: usize, up: bool): void {
  const bits = up ? 11 : 15;
  const d0 = v128.load(block);
  const d1 = v128.load(block, ROW);
  const d2 = v128.load(block, 2 * ROW);
  const d3 = v128.load(block, 3 * ROW);
  const d4 = v128.load(block, 4 * ROW);
  const d5 = v128.load(block, 5 * ROW);
  const d6 = v128.load(block, 6 * ROW);
  const d7 = v128.load(block, 7 * ROW);
  const s0 = i16x8.add(d0, d7);
  const s1 = i16x8.add(d1, d6);
  const s2 = i16x8.add(d2, d5);
  const s3 = i16x8.add(d3, d4);
  const e0 = i16x8.add(s0, s3);
  const e1 = i16x8.add(s1, s2);
  const e2 = i16x8.sub(s1, s2);
  const e3 = i16x8.sub(s0, s3);
  const sum = i16x8.add(e0, e1);
  const difference = i16x8.sub(e0, e1);
  v128.store(block, up ? i16x8.shl(sum, 2) : i16x8.shr_s(i16x8.add(sum, i16x8.splat(2)), 2));
  v128.store(block, up ? i16x8.shl(difference, 2) : i16x8.shr_s(i16x8.add(difference, i16x8.splat(2)), 2), 4 * ROW);
  const evenLow = lowWords(e2, e3);
  const evenHigh = highWords(e2, e3);
  v128.store(block, roundedWords(dot(evenLow, 4433, 10703), dot(evenHigh, 4433, 10703), bits), 2 * ROW);
  v128.store(block, roundedWords(dot(evenLow, -10704, 4433), dot(evenHigh, -10704, 4433), bits), 6 * ROW);
  const t4 = i16x8.sub(d3, d4);
  const t5 = i16x8.sub(d2, d5);
  const t6 = i16x8.sub(d1, d6);
  const t7 = i16x8.sub(d0, d7);
  const a = i16x8.add(t4, t6);
  const b = i16x8.add(t5, t7);
  const abLow = lowWords(a, b);
  const abHigh = highWords(a, b);
  const z3Low = dot(abLow, -6436, 9633);
  const z3High = dot(abHigh, -6436, 9633);
  const z4Low = dot(abLow, 9633, 6437);
  const z4High = dot(abHigh, 9633, 6437);
  const outerLow = lowWords(t4, t7);
  const outerHigh = highWords(t4, t7);
  const innerLow = lowWords(t5, t6);
  const innerHigh = highWords(t5, t6);
  v128.store(
    block,
    roundedWords(i32x4.add(dot(outerLow, -7373, 4926), z4Low), i32x4.add(dot(outerHigh, -7373, 4926), z4High), bits),
    ROW
  );
  v128.store(
    block,
    roundedWords(i32x4.add(dot(innerLow, -20995, 4177), z3Low), i32x4.add(dot(innerHigh, -20995, 4177), z3High), bits),
    3 * ROW
  );
  v128.store(
    block,
    roundedWords(i32x4.add(dot(innerLow, -4176, -20995), z4Low), i32x4.add(dot(innerHigh, -4176, -20995), z4High), bits),
    5 * ROW
  );
  v128.store(
    block,
    roundedWords(i32x4.add(dot(outerLow, -4927, -7373), z3Low), i32x4.add(dot(outerHigh, -4927, -7373), z3High), bits),
    7 * ROW
  );
}

/** Stores the sum and the difference of eight values, divided by 2^bits. */
@inline function storeBoth(
  evenLow: v128, evenHigh: v128, oddLow: v128, oddHigh: v128, bits: i32, sum: usize, difference: usize
): void {
  v128.store(sum, roundedWords(i32x4.add(evenLow, oddLow), i32x4.add(evenHigh, oddHigh), bits));
  v128.store(difference, roundedWords(i32x4.sub(evenLow, oddLow), i32x4.sub(evenHigh, oddHigh), bits));
}

/** The inverse transform of the columns of a block. */
@inline function inverse(block: usize, bits: i32): void {
  const c0 = v128.load(block);
  const c2 = v128.load(block, 2 * ROW);
  const c4 = v128.load(block, 4 * ROW);
  const c6 = v128.load(block, 6 * ROW);
  const evenLow = lowWords(c2, c6);
  const evenHigh = highWords(c2, c6);
  const e2Low = dot(evenLow, 4433, -10704);
  const e2High = dot(evenHigh, 4433, -10704);
  const e3Low = dot(evenLow, 10703, 4433);
  const e3High = dot(evenHigh, 10703, 4433);
  const sum = i16x8.add(c0, c4);
  const difference = i16x8.sub(c0, c4);
  const e0Low = i32x4.shl(i32x4.extend_low_i16x8_s(sum), 13);
  const e0High = i32x4.shl(i32x4.extend_high_i16x8_s(sum), 13);
  const e1Low = i32x4.shl(i32x4.extend_low_i16x8_s(difference), 13);
  const e1High = i32x4.shl(i32x4.extend_high_i16x8_s(difference), 13);
  const c1 = v128.load(block, ROW);
  const c3 = v128.load(block, 3 * ROW);
  const c5 = v128.load(block, 5 * ROW);
  const c7 = v128.load(block, 7 * ROW);
  const a = i16x8.add(c7, c3);
  const b = i16x8.add(c5, c1);
  const abLow = lowWords(a, b);
  const abHigh = highWords(a, b);
  const z3Low = dot(abLow, -6436, 9633);
  const z3High = dot(abHigh, -6436, 9633);
  const z4Low = dot(abLow, 9633, 6437);
  const z4High = dot(abHigh, 9633, 6437);
  const outerLow = lowWords(c7, c1);
  const outerHigh = highWords(c7, c1);
  const innerLow = lowWords(c5, c3);
  const innerHigh = highWords(c5, c3);
  storeBoth(
    i32x4.add(e0Low, e3Low), i32x4.add(e0High, e3High),
    i32x4.add(dot(outerLow, -7373, 4926), z4Low), i32x4.add(dot(outerHigh, -7373, 4926), z4High),
    bits, block, block + 7 * ROW
  );
  storeBoth(
    i32x4.add(e1Low, e2Low), i32x4.add(e1High, e2High),
    i32x4.add(dot(innerLow, -20995, 4177), z3Low), i32x4.add(dot(innerHigh, -20995, 4177), z3High),
    bits, block + ROW, block + 6 * ROW
  );
  storeBoth(
    i32x4.sub(e1Low, e2Low), i32x4.sub(e1High, e2High),
    i32x4.add(dot(innerLow, -4176, -20995), z4Low), i32x4.add(dot(innerHigh, -4176, -20995), z4High),
    bits, block + 2 * ROW, block + 5 * ROW
  );
  storeBoth(
    i32x4.sub(e0Low, e3Low), i32x4.sub(e0High, e3High),
    i32x4.add(dot(outerLow, -4927, -7373), z3Low), i32x4.add(dot(outerHigh, -4927, -7373), z3High),
    bits, block + 3 * ROW, block + 4 * ROW
  );
}

/** Transposes a block in place. */
@inline function transpose(block: usize): void {
  const r0 = v128.load(block);
  const r1 = v128.load(block, ROW);
  const r2 = v128.load(block, 2 * ROW);
  const r3 = v128.load(block, 3 * ROW);
  const r4 = v128.load(block, 4 * ROW);
  const r5 = v128.load(block, 5 * ROW);
  const r6 = v128.load(block, 6 * ROW);
  const r7 = v128.load(block, 7 * ROW);
  // Three rounds, each of which interleaves rows that are half the block apart.
  const a0 = lowWords(r0, r4);
  const a1 = highWords(r0, r4);
  const a2 = lowWords(r1, r5);
  const a3 = highWords(r1, r5);
  const a4 = lowWords(r2, r6);
  const a5 = highWords(r2, r6);
  const a6 = lowWords(r3, r7);
  const a7 = highWords(r3, r7);
  const b0 = lowWords(a0, a4);
  const b1 = highWords(a0, a4);
  const b2 = lowWords(a1, a5);
  const b3 = highWords(a1, a5);
  const b4 = lowWords(a2, a6);
  const b5 = highWords(a2, a6);
  const b6 = lowWords(a3, a7);
  const b7 = highWords(a3, a7);
  v128.store(block, lowWords(b0, b4));
  v128.store(block, highWords(b0, b4), ROW);
  v128.store(block, lowWords(b1, b5), 2 * ROW);
  v128.store(block, highWords(b1, b5), 3 * ROW);
  v128.store(block, lowWords(b2, b6), 4 * ROW);
  v128.store(block, highWords(b2, b6), 5 * ROW);
  v128.store(block, lowWords(b3, b7), 6 * ROW);
  v128.store(block, highWords(b3, b7), 7 * ROW);
}

/** 2^23: adding it rounds a float that is not negative to an integer, which is then in its lower bits. */
const TO_INTEGER: f32 = 8388608;

/** The number of quantizers in four coefficients of a block, which are 8 times too large. */
@inline function counts(sizes: v128, reciprocals: usize): v128 {
  const size = f32x4.add(f32x4.convert_i32x4_s(sizes), f32x4.splat(0.25));
  const count = f32x4.add(f32x4.mul(size, v128.load(reciprocals)), f32x4.splat(TO_INTEGER));
  return v128.and(count, i32x4.splat(0xffff));
}

/**
 * Quantizes and dequantizes a block: coefficient / divisor, rounded half away from zero. The divisor is 8 times the quantizer. A quarter
 * decides halves, and changes nothing else. A quotient is less than 2^15 / divisor, so that the error of the float is far less than the
 * distance from a half, which is at least 1 / (4 * divisor).
 */
@inline function quantize(block: usize, quantizers: usize, reciprocals: usize): void {
  for (let at: usize = 0; at < 128; at += 16) {
    const value = v128.load(block + at);
    const size = i16x8.abs(value);
    const low = counts(i32x4.extend_low_i16x8_s(size), reciprocals + 2 * at);
    const high = counts(i32x4.extend_high_i16x8_s(size), reciprocals + 2 * at + 16);
    const back = i16x8.mul(i16x8.narrow_i32x4_s(low, high), v128.load(quantizers + at));
    const sign = i16x8.shr_s(value, 15);
    v128.store(block + at, i16x8.sub(v128.xor(back, sign), sign));
  }
}

/** Compresses all blocks of a plane. Its sides are multiples of 8. `quantizers` are 64 words. `scratch` is the address of 384 bytes. */
function compress(plane: usize, width: usize, height: usize, quantizers: usize, scratch: usize): void {
  const block = scratch + 256;
  for (let i: usize = 0; i < 64; i++) store<f32>(scratch + i * 4, 0.125 / <f32>load<u16>(quantizers + i * 2));
  for (let y: usize = 0; y < height; y += 8) {
    for (let x: usize = 0; x < width; x += 8) {
      const start = plane + y * width + x;
      for (let row: usize = 0; row < 8; row++) {
        v128.store(block + row * ROW, i16x8.sub(v128.load8x8_u(start + row * width), i16x8.splat(128)));
      }
      transpose(block);
      forward(block, true);
      transpose(block);
      forward(block, false);
      quantize(block, quantizers, scratch);
      inverse(block, 11);
      transpose(block);
      inverse(block, 18);
      transpose(block);
      for (let row: usize = 0; row < 8; row++) {
        const words = i16x8.add_sat_s(v128.load(block + row * ROW), i16x8.splat(128));
        v128.store64_lane(start + row * width, i8x16.narrow_i16x8_u(words, words), 0);
      }
    }
  }
}

/** Copies row `last` of a plane to the rows below it. */
function repeatRow(plane: usize, width: usize, last: usize, height: usize): void {
  for (let y = last + 1; y < height; y++) memory.copy(plane + y * width, plane + last * width, width);
}

/** Words of red and green, r0 g0 r1 g1 ..., of four pixels. */
@inline function redGreen(pixels: v128): v128 {
  return i8x16.shuffle(pixels, i32x4.splat(0), 0, 16, 1, 16, 3, 16, 4, 16, 6, 16, 7, 16, 9, 16, 10, 16);
}

/** Words of green and blue. */
@inline function greenBlue(pixels: v128): v128 {
  return i8x16.shuffle(pixels, i32x4.splat(0), 1, 16, 2, 16, 4, 16, 5, 16, 7, 16, 8, 16, 10, 16, 11, 16);
}

/** 19595 r + 38470 g + 7471 b, in units of 1/65536. 38470 is twice 19235. */
@inline function lumaOf(rg: v128, gb: v128): v128 {
  return i32x4.shr_u(i32x4.add(i32x4.add(dot(rg, 19595, 19235), dot(gb, 19235, 7471)), i32x4.splat(32768)), 16);
}

/** 32768 b - 11059 r - 21709 g. */
@inline function blueDifference(rg: v128, gb: v128): v128 {
  const blue = i32x4.shr_u(v128.and(gb, i32x4.splat(0xffff0000)), 1);
  return i32x4.shr_u(i32x4.add(i32x4.add(dot(rg, -11059, -21709), blue), i32x4.splat((128 << 16) + 32767)), 16);
}

/** 32768 r - 27439 g - 5329 b. */
@inline function redDifference(rg: v128, gb: v128): v128 {
  const red = i32x4.shl(v128.and(rg, i32x4.splat(0xffff)), 15);
  return i32x4.shr_u(i32x4.add(i32x4.add(dot(gb, -27439, -5329), red), i32x4.splat((128 << 16) + 32767)), 16);
}

/** Sums of neighbours: four of eight. */
@inline function sumsOfTwo(low: v128, high: v128): v128 {
  return i32x4.add(i8x16.shuffle(low, high, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27),
    i8x16.shuffle(low, high, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31));
}

/** Stores the means of 2 x 2 values, rounded up and down by turns, as four bytes. */
@inline function storeMeans(to: usize, low: v128, high: v128): void {
  const means = i32x4.shr_u(i32x4.add(sumsOfTwo(low, high), i32x4(1, 2, 1, 2)), 2);
  const words = i16x8.narrow_i32x4_s(means, means);
  v128.store32_lane(to, i8x16.narrow_i16x8_u(words, words), 0);
}

/** Stores the luma of eight pixels. */
@inline function storeLuma(to: usize, rg0: v128, gb0: v128, rg1: v128, gb1: v128): void {
  const words = i16x8.narrow_i32x4_s(lumaOf(rg0, gb0), lumaOf(rg1, gb1));
  v128.store64_lane(to, i8x16.narrow_i16x8_u(words, words), 0);
}

/** Converts eight pixels of two rows. Reads 4 bytes past them. */
@inline function splitPixels(top: usize, bottom: usize, luma: usize, lumaBelow: usize, blue: usize, red: usize, hasLuma: bool): void {
  const top0 = v128.load(top);
  const top1 = v128.load(top, 12);
  const bottom0 = v128.load(bottom);
  const bottom1 = v128.load(bottom, 12);
  const topRg0 = redGreen(top0);
  const topGb0 = greenBlue(top0);
  const topRg1 = redGreen(top1);
  const topGb1 = greenBlue(top1);
  const bottomRg0 = redGreen(bottom0);
  const bottomGb0 = greenBlue(bottom0);
  const bottomRg1 = redGreen(bottom1);
  const bottomGb1 = greenBlue(bottom1);
  if (hasLuma) {
    storeLuma(luma, topRg0, topGb0, topRg1, topGb1);
    storeLuma(lumaBelow, bottomRg0, bottomGb0, bottomRg1, bottomGb1);
  }
  storeMeans(blue, i32x4.add(blueDifference(topRg0, topGb0), blueDifference(bottomRg0, bottomGb0)),
    i32x4.add(blueDifference(topRg1, topGb1), blueDifference(bottomRg1, bottomGb1)));
  storeMeans(red, i32x4.add(redDifference(topRg0, topGb0), redDifference(bottomRg0, bottomGb0)),
    i32x4.add(redDifference(topRg1, topGb1), redDifference(bottomRg1, bottomGb1)));
}

/** Copies eight pixels of a row from column `x`. Beyond the edge the last pixel repeats. */
function copyRepeated(row: usize, x: usize, width: usize, to: usize): void {
  for (let i: usize = 0; i < 8; i++) {
    const from = row + min(x + i, width - 1) * 3;
    for (let channel: usize = 0; channel < 3; channel++) store<u8>(to + i * 3 + channel, load<u8>(from + channel));
  }
}

/** Converts to YCbCr. Beyond the edges pixels repeat. `scratch` is the address of 64 bytes. */
function split(
  address: usize, width: usize, height: usize, luma: usize, blue: usize, red: usize, lumaWidth: usize, chromaWidth: usize, scratch: usize
): void {
  for (let y: usize = 0; y < height; y += 2) {
    const top = address + y * width * 3;
    const bottom = address + min(y + 1, height - 1) * width * 3;
    const lumaRow = luma + y * lumaWidth;
    const chromaRow = (y >> 1) * chromaWidth;
    for (let x: usize = 0; x < chromaWidth * 2; x += 8) {
      const chroma = chromaRow + (x >> 1);
      const isInside = x + 8 <= width;
      if (!isInside) {
        copyRepeated(top, x, width, scratch);
        copyRepeated(bottom, x, width, scratch + 32);
      }
      splitPixels(
        isInside ? top + x * 3 : scratch, isInside ? bottom + x * 3 : scratch + 32, lumaRow + x, lumaRow + lumaWidth + x, blue + chroma,
        red + chroma, x < lumaWidth
      );
    }
  }
}

/** Writes 3/4 of the nearer and 1/4 of the farther row of chroma, times 4, as words. The values at the ends are there twice. */
function mixRows(near: usize, far: usize, columns: usize, to: usize): void {
  for (let x: usize = 0; x < columns; x += 8) {
    const own = v128.load8x8_u(near + x);
    const other = v128.load8x8_u(far + x);
    v128.store(to + x * 2, i16x8.sub(i16x8.add(i16x8.add(i16x8.shl(own, 2), other), i16x8.splat(-512)), own));
  }
  store<u16>(to - 2, load<u16>(to));
  store<u16>(to + columns * 2, load<u16>(to + columns * 2 - 2));
}

/** Chroma of the even columns at twice the width, less 128: 3/4 of the own and 1/4 of the column before. `words` are of {@link mixRows}. */
@inline function evenColumns(words: usize): v128 {
  const own = v128.load(words);
  const triple = i16x8.add(i16x8.add(own, own), own);
  return i16x8.shr_s(i16x8.add(i16x8.add(triple, v128.load(words - 2)), i16x8.splat(8)), 4);
}

/** The odd columns: 1/4 is of the column after. */
@inline function oddColumns(words: usize): v128 {
  const own = v128.load(words);
  const triple = i16x8.add(i16x8.add(own, own), own);
  return i16x8.shr_s(i16x8.add(i16x8.add(triple, v128.load(words, 2)), i16x8.splat(7)), 4);
}

/** (first * cb + second * cr) / 65536 of eight pixels, rounded. */
@inline function share(low: v128, high: v128, first: i32, second: i32): v128 {
  return roundedWords(dot(low, first, second), dot(high, first, second), 16);
}

/** luma + 1.402 cr, of eight pixels. `low` and `high` are pairs of cb and cr. 91881 is 65536 + 26345. */
@inline function redOf(luma: v128, low: v128, high: v128, cr: v128): v128 {
  return i16x8.add(i16x8.add(luma, cr), share(low, high, 0, 26345));
}

/** luma - 0.344 cb - 0.714 cr. -46802 is -65536 + 18734. */
@inline function greenOf(luma: v128, low: v128, high: v128, cr: v128): v128 {
  return i16x8.add(i16x8.sub(luma, cr), share(low, high, -22554, 18734));
}

/** luma + 1.772 cb. 116130 is 2 * 65536 - 14942. */
@inline function blueOf(luma: v128, low: v128, high: v128, cb: v128): v128 {
  return i16x8.add(i16x8.add(luma, i16x8.add(cb, cb)), share(low, high, -14942, 0));
}

/** Converts 16 pixels to RGB. Chroma is less 128: of the first eight pixels, then of the others. */
@inline function joinPixels(luma: usize, cb0: v128, cb1: v128, cr0: v128, cr1: v128, to: usize): void {
  const luma0 = v128.load8x8_u(luma);
  const luma1 = v128.load8x8_u(luma + 8);
  const low0 = lowWords(cb0, cr0);
  const high0 = highWords(cb0, cr0);
  const low1 = lowWords(cb1, cr1);
  const high1 = highWords(cb1, cr1);
  const r = i8x16.narrow_i16x8_u(redOf(luma0, low0, high0, cr0), redOf(luma1, low1, high1, cr1));
  const g = i8x16.narrow_i16x8_u(greenOf(luma0, low0, high0, cr0), greenOf(luma1, low1, high1, cr1));
  const b = i8x16.narrow_i16x8_u(blueOf(luma0, low0, high0, cb0), blueOf(luma1, low1, high1, cb1));
  const rg = lowBytes(r, g);
  const RG = highBytes(r, g);
  v128.store(to, i8x16.shuffle(rg, b, 0, 1, 16, 2, 3, 17, 4, 5, 18, 6, 7, 19, 8, 9, 20, 10));
  const middle = i8x16.shuffle(rg, RG, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 0, 0, 0, 0, 0);
  v128.store(to, i8x16.shuffle(middle, b, 0, 21, 1, 2, 22, 3, 4, 23, 5, 6, 24, 7, 8, 25, 9, 10), 16);
  v128.store(to, i8x16.shuffle(RG, b, 26, 6, 7, 27, 8, 9, 28, 10, 11, 29, 12, 13, 30, 14, 15, 31), 32);
}

/** Eight bytes of chroma less 128. */
@inline function centred(at: usize): v128 {
  return i16x8.sub(v128.load8x8_u(at), i16x8.splat(128));
}

/**
 * Converts back to RGB. libjpeg does not smooth chroma of at most two columns. Writes up to 45 bytes past a row. `words` is the address of two
 * rows of `pitch` bytes with 16 bytes before each.
 */
function join(
  address: usize, width: usize, height: usize, luma: usize, blue: usize, red: usize, lumaWidth: usize, chromaWidth: usize, words: usize,
  pitch: usize
): void {
  const columns = (width + 1) >> 1;
  const rows = (height + 1) >> 1;
  const isSmooth = columns > 2;
  const blueWords = words;
  const redWords = words + pitch;
  for (let y: usize = 0; y < height; y++) {
    const row = y >> 1;
    const other = (y & 1) == 1 ? min(row + 1, rows - 1) : row == 0 ? 0 : row - 1;
    const near = row * chromaWidth;
    const far = other * chromaWidth;
    const lumaRow = luma + y * lumaWidth;
    const target = address + y * width * 3;
    if (!isSmooth) {
      const cb = centred(blue + near);
      const cr = centred(red + near);
      joinPixels(lumaRow, lowWords(cb, cb), highWords(cb, cb), lowWords(cr, cr), highWords(cr, cr), target);
      continue;
    }
    mixRows(blue + near, blue + far, columns, blueWords);
    mixRows(red + near, red + far, columns, redWords);
    for (let x: usize = 0; x < width; x += 16) {
      const cbEven = evenColumns(blueWords + x);
      const cbOdd = oddColumns(blueWords + x);
      const crEven = evenColumns(redWords + x);
      const crOdd = oddColumns(redWords + x);
      joinPixels(
        lumaRow + x, lowWords(cbEven, cbOdd), highWords(cbEven, cbOdd), lowWords(crEven, crOdd), highWords(crEven, crOdd), target + x * 3
      );
    }
  }
}

/**
 * Compresses and decompresses a picture, in place, and writes up to 45 bytes past it. `tables` are 64 quantizers of luma and 64 of chroma as
 * words, in rows. `scratch` is working memory: 512 bytes, two rows of words, then the planes, whose sides are rounded up to blocks.
 */
export function jpegArtifacts(address: usize, width: usize, height: usize, tables: usize, scratch: usize): void {
  const chromaRows = (height + 1) >> 1;
  const lumaWidth = (width + 7) & ~7;
  const lumaHeight = (height + 7) & ~7;
  const chromaWidth = (((width + 1) >> 1) + 7) & ~7;
  const chromaHeight = (chromaRows + 7) & ~7;
  const pitch = chromaWidth * 2 + 32;
  const words = scratch + 512 + 16;
  const luma = scratch + 512 + 2 * pitch;
  const blue = luma + lumaWidth * lumaHeight;
  const red = blue + chromaWidth * chromaHeight;
  split(address, width, height, luma, blue, red, lumaWidth, chromaWidth, scratch);
  repeatRow(luma, lumaWidth, height - 1, lumaHeight);
  repeatRow(blue, chromaWidth, chromaRows - 1, chromaHeight);
  repeatRow(red, chromaWidth, chromaRows - 1, chromaHeight);
  compress(luma, lumaWidth, lumaHeight, tables, scratch);
  compress(blue, chromaWidth, chromaHeight, tables + 128, scratch);
  compress(red, chromaWidth, chromaHeight, tables + 128, scratch);
  join(address, width, height, luma, blue, red, lumaWidth, chromaWidth, words, pitch);
}
