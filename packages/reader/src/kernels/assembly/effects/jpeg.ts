// What JPEG compression changes in a picture, with the integers of libjpeg-turbo (jccolor.c, jcsample.c, jfdctint.c, jidctint.c, jdsample.c,
// jdcolor.c): YCbCr with 4:2:0 chroma, the accurate integer DCT ("islow"), and triangle ("fancy") upsampling. Entropy coding loses nothing,
// so it is left out.

/** Rows of a block of 8 x 8 words of 32 bits are this many bytes apart. */
const ROW: usize = 32;

@inline function scale(value: v128, factor: i32): v128 {
  return i32x4.mul(value, i32x4.splat(factor));
}

/** Divides by 2^bits, rounded. */
@inline function rounded(value: v128, bits: i32): v128 {
  return i32x4.shr_s(i32x4.add(value, i32x4.splat(1 << (bits - 1))), bits);
}

/** The forward transform of four columns. The first pass keeps two more bits (`up`), the second removes them. */
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
  const s0 = i32x4.add(d0, d7);
  const s1 = i32x4.add(d1, d6);
  const s2 = i32x4.add(d2, d5);
  const s3 = i32x4.add(d3, d4);
  const e0 = i32x4.add(s0, s3);
  const e1 = i32x4.add(s1, s2);
  const e2 = i32x4.sub(s1, s2);
  const e3 = i32x4.sub(s0, s3);
  const sum = i32x4.add(e0, e1);
  const difference = i32x4.sub(e0, e1);
  v128.store(block, up ? i32x4.shl(sum, 2) : rounded(sum, 2));
  v128.store(block, up ? i32x4.shl(difference, 2) : rounded(difference, 2), 4 * ROW);
  const even = scale(i32x4.add(e2, e3), 4433);
  v128.store(block, rounded(i32x4.add(even, scale(e3, 6270)), bits), 2 * ROW);
  v128.store(block, rounded(i32x4.sub(even, scale(e2, 15137)), bits), 6 * ROW);
  const t4 = i32x4.sub(d3, d4);
  const t5 = i32x4.sub(d2, d5);
  const t6 = i32x4.sub(d1, d6);
  const t7 = i32x4.sub(d0, d7);
  const z1 = scale(i32x4.add(t4, t7), -7373);
  const z2 = scale(i32x4.add(t5, t6), -20995);
  const a = i32x4.add(t4, t6);
  const b = i32x4.add(t5, t7);
  const z5 = scale(i32x4.add(a, b), 9633);
  const z3 = i32x4.add(scale(a, -16069), z5);
  const z4 = i32x4.add(scale(b, -3196), z5);
  v128.store(block, rounded(i32x4.add(scale(t7, 12299), i32x4.add(z1, z4)), bits), ROW);
  v128.store(block, rounded(i32x4.add(scale(t6, 25172), i32x4.add(z2, z3)), bits), 3 * ROW);
  v128.store(block, rounded(i32x4.add(scale(t5, 16819), i32x4.add(z2, z4)), bits), 5 * ROW);
  v128.store(block, rounded(i32x4.add(scale(t4, 2446), i32x4.add(z1, z3)), bits), 7 * ROW);
}

/** The inverse transform of four columns. */
@inline function inverse(block: usize, bits: i32): void {
  const c0 = v128.load(block);
  const c2 = v128.load(block, 2 * ROW);
  const c4 = v128.load(block, 4 * ROW);
  const c6 = v128.load(block, 6 * ROW);
  const even = scale(i32x4.add(c2, c6), 4433);
  const e2 = i32x4.sub(even, scale(c6, 15137));
  const e3 = i32x4.add(even, scale(c2, 6270));
  const e0 = i32x4.shl(i32x4.add(c0, c4), 13);
  const e1 = i32x4.shl(i32x4.sub(c0, c4), 13);
  const s0 = i32x4.add(e0, e3);
  const s3 = i32x4.sub(e0, e3);
  const s1 = i32x4.add(e1, e2);
  const s2 = i32x4.sub(e1, e2);
  const c1 = v128.load(block, ROW);
  const c3 = v128.load(block, 3 * ROW);
  const c5 = v128.load(block, 5 * ROW);
  const c7 = v128.load(block, 7 * ROW);
  const z1 = scale(i32x4.add(c7, c1), -7373);
  const z2 = scale(i32x4.add(c5, c3), -20995);
  const a = i32x4.add(c7, c3);
  const b = i32x4.add(c5, c1);
  const z5 = scale(i32x4.add(a, b), 9633);
  const z3 = i32x4.add(scale(a, -16069), z5);
  const z4 = i32x4.add(scale(b, -3196), z5);
  const o0 = i32x4.add(scale(c7, 2446), i32x4.add(z1, z3));
  const o1 = i32x4.add(scale(c5, 16819), i32x4.add(z2, z4));
  const o2 = i32x4.add(scale(c3, 25172), i32x4.add(z2, z3));
  const o3 = i32x4.add(scale(c1, 12299), i32x4.add(z1, z4));
  v128.store(block, rounded(i32x4.add(s0, o3), bits));
  v128.store(block, rounded(i32x4.sub(s0, o3), bits), 7 * ROW);
  v128.store(block, rounded(i32x4.add(s1, o2), bits), ROW);
  v128.store(block, rounded(i32x4.sub(s1, o2), bits), 6 * ROW);
  v128.store(block, rounded(i32x4.add(s2, o1), bits), 2 * ROW);
  v128.store(block, rounded(i32x4.sub(s2, o1), bits), 5 * ROW);
  v128.store(block, rounded(i32x4.add(s3, o0), bits), 3 * ROW);
  v128.store(block, rounded(i32x4.sub(s3, o0), bits), 4 * ROW);
}

/** Transposes 4 x 4 words of `from` into `to`. */
@inline function transpose4(from: usize, to: usize): void {
  const a = v128.load(from);
  const b = v128.load(from, ROW);
  const c = v128.load(from, 2 * ROW);
  const d = v128.load(from, 3 * ROW);
  const ab = i32x4.shuffle(a, b, 0, 4, 1, 5);
  const cd = i32x4.shuffle(c, d, 0, 4, 1, 5);
  const AB = i32x4.shuffle(a, b, 2, 6, 3, 7);
  const CD = i32x4.shuffle(c, d, 2, 6, 3, 7);
  v128.store(to, i64x2.shuffle(ab, cd, 0, 2));
  v128.store(to, i64x2.shuffle(ab, cd, 1, 3), ROW);
  v128.store(to, i64x2.shuffle(AB, CD, 0, 2), 2 * ROW);
  v128.store(to, i64x2.shuffle(AB, CD, 1, 3), 3 * ROW);
}

@inline function transpose8(from: usize, to: usize): void {
  transpose4(from, to);
  transpose4(from + 16, to + 4 * ROW);
  transpose4(from + 4 * ROW, to + 16);
  transpose4(from + 4 * ROW + 16, to + 4 * ROW + 16);
}

/**
 * Quantizes and dequantizes a block: coefficient / divisor, rounded half away from zero. `table` has 64 quantizers as
 * float32; coefficients are 8 times too large. The quotient of two integers below 2^24 is never rounded across an integer.
 */
@inline function quantize(block: usize, table: usize): void {
  for (let at: usize = 0; at < 256; at += 16) {
    const value = v128.load(block + at);
    const quantizer = v128.load(table + at);
    const divisor = f32x4.mul(quantizer, f32x4.splat(8));
    const size = f32x4.convert_i32x4_s(i32x4.abs(value));
    const half = f32x4.mul(quantizer, f32x4.splat(4));
    const count = f32x4.floor(f32x4.div(f32x4.add(size, half), divisor));
    const back = i32x4.trunc_sat_f32x4_s(f32x4.mul(count, quantizer));
    const sign = i32x4.shr_s(value, 31);
    v128.store(block + at, i32x4.sub(v128.xor(back, sign), sign));
  }
}

/** Compresses all blocks of a plane. Its sides are multiples of 8. `block` is the address of two blocks of 256 bytes. */
function compress(plane: usize, width: usize, height: usize, table: usize, block: usize): void {
  const other = block + 256;
  for (let y: usize = 0; y < height; y += 8) {
    for (let x: usize = 0; x < width; x += 8) {
      const start = plane + y * width + x;
      for (let row: usize = 0; row < 8; row++) {
        const words = i16x8.sub(v128.load8x8_u(start + row * width), i16x8.splat(128));
        v128.store(other + row * ROW, i32x4.extend_low_i16x8_s(words));
        v128.store(other + row * ROW, i32x4.extend_high_i16x8_s(words), 16);
      }
      transpose8(other, block);
      forward(block, true);
      forward(block + 16, true);
      transpose8(block, other);
      forward(other, false);
      forward(other + 16, false);
      quantize(other, table);
      inverse(other, 11);
      inverse(other + 16, 11);
      transpose8(other, block);
      inverse(block, 18);
      inverse(block + 16, 18);
      transpose8(block, other);
      for (let row: usize = 0; row < 8; row++) {
        const low = v128.load(other + row * ROW);
        const high = v128.load(other + row * ROW, 16);
        const words = i16x8.add_sat_s(i16x8.narrow_i32x4_s(low, high), i16x8.splat(128));
        v128.store64_lane(start + row * width, i8x16.narrow_i16x8_u(words, words), 0);
      }
    }
  }
}

/** Copies row `last` of a plane to the rows below it. */
function repeatRow(plane: usize, width: usize, last: usize, height: usize): void {
  for (let y = last + 1; y < height; y++) memory.copy(plane + y * width, plane + last * width, width);
}

/** Converts to YCbCr. Chroma is the mean of 2 x 2 pixels, rounded up and down by turns. Beyond the edges pixels repeat. */
function split(address: usize, width: usize, height: usize, luma: usize, blue: usize, red: usize, lumaWidth: usize, chromaWidth: usize): void {
  for (let row: usize = 0; row < height; row += 2) {
    for (let column: usize = 0; column < chromaWidth * 2; column += 2) {
      let cb: u32 = 0;
      let cr: u32 = 0;
      for (let part: usize = 0; part < 4; part++) {
        const x = column + (part & 1);
        const y = row + (part >> 1);
        const at = address + (min(y, height - 1) * width + min(x, width - 1)) * 3;
        const r = <i32>load<u8>(at);
        const g = <i32>load<u8>(at, 1);
        const b = <i32>load<u8>(at, 2);
        if (x < lumaWidth && y < height) store<u8>(luma + y * lumaWidth + x, (19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
        cb += (-11059 * r - 21709 * g + 32768 * b + (128 << 16) + 32767) >> 16;
        cr += (32768 * r - 27439 * g - 5329 * b + (128 << 16) + 32767) >> 16;
      }
      const to = (row >> 1) * chromaWidth + (column >> 1);
      const bias: u32 = (column >> 1) & 1 ? 2 : 1;
      store<u8>(blue + to, (cb + bias) >> 2);
      store<u8>(red + to, (cr + bias) >> 2);
    }
  }
}

/** One value of a chroma plane at twice its size: 3/4 of the nearer and 1/4 of the farther row, and the same along the row. */
@inline function enlarged(near: usize, far: usize, x: usize, columns: usize): i32 {
  const at = x >> 1;
  const own = 3 * <i32>load<u8>(near + at) + <i32>load<u8>(far + at);
  const isRight = (x & 1) == 1;
  const isEdge = isRight ? at == columns - 1 : at == 0;
  const next = isEdge ? at : isRight ? at + 1 : at - 1;
  const side = isEdge ? own : 3 * <i32>load<u8>(near + next) + <i32>load<u8>(far + next);
  return (3 * own + side + (isRight ? 7 : 8)) >> 4;
}

@inline function toByte(value: i32): i32 {
  return max(0, min(255, value));
}

/** Converts back to RGB. libjpeg does not smooth chroma of at most two columns. */
function join(address: usize, width: usize, height: usize, luma: usize, blue: usize, red: usize, lumaWidth: usize, chromaWidth: usize): void {
  const columns = (width + 1) >> 1;
  const rows = (height + 1) >> 1;
  const isSmooth = columns > 2;
  for (let y: usize = 0; y < height; y++) {
    const row = y >> 1;
    const other = (y & 1) == 1 ? min(row + 1, rows - 1) : row == 0 ? 0 : row - 1;
    const near = row * chromaWidth;
    const far = other * chromaWidth;
    for (let x: usize = 0; x < width; x++) {
      const cb = (isSmooth ? enlarged(blue + near, blue + far, x, columns) : <i32>load<u8>(blue + near + (x >> 1))) - 128;
      const cr = (isSmooth ? enlarged(red + near, red + far, x, columns) : <i32>load<u8>(red + near + (x >> 1))) - 128;
      const value = <i32>load<u8>(luma + y * lumaWidth + x);
      const at = address + (y * width + x) * 3;
      store<u8>(at, toByte(value + ((91881 * cr + 32768) >> 16)));
      store<u8>(at, toByte(value + ((-22554 * cb - 46802 * cr + 32768) >> 16)), 1);
      store<u8>(at, toByte(value + ((116130 * cb + 32768) >> 16)), 2);
    }
  }
}

/**
 * Compresses and decompresses a picture, in place. `tables` are 64 quantizers of luma and 64 of chroma as float32, in rows. `scratch` is the
 * address of two blocks, then the planes, whose sides are rounded up to blocks.
 */
export function jpegArtifacts(address: usize, width: usize, height: usize, tables: usize, scratch: usize): void {
  const chromaRows = (height + 1) >> 1;
  const lumaWidth = (width + 7) & ~7;
  const lumaHeight = (height + 7) & ~7;
  const chromaWidth = (((width + 1) >> 1) + 7) & ~7;
  const chromaHeight = (chromaRows + 7) & ~7;
  const luma = scratch + 512;
  const blue = luma + lumaWidth * lumaHeight;
  const red = blue + chromaWidth * chromaHeight;
  split(address, width, height, luma, blue, red, lumaWidth, chromaWidth);
  repeatRow(luma, lumaWidth, height - 1, lumaHeight);
  repeatRow(blue, chromaWidth, chromaRows - 1, chromaHeight);
  repeatRow(red, chromaWidth, chromaRows - 1, chromaHeight);
  compress(luma, lumaWidth, lumaHeight, tables, scratch);
  compress(blue, chromaWidth, chromaHeight, tables + 256, scratch);
  compress(red, chromaWidth, chromaHeight, tables + 256, scratch);
  join(address, width, height, luma, blue, red, lumaWidth, chromaWidth);
}
