// Writes entropy-coded data, with a zero stuffed after each 0xff. Bits that do not fill a byte yet are pending.
import { dcCode, dcCodeLength, isOwnCode } from './huffman';
import { BAD_INDEX, codesOf, Component, NO_CODE, NO_ROOM, State } from './state';

@inline function putByte(state: State, byte: u32): void {
  store<u8>(state.to++, <u8>byte);
  if (byte == 0xff) store<u8>(state.to++, 0);
}

/** Writes `count` bits, at most 24. */
@inline function putBits(state: State, value: u32, count: u32): void {
  let pending = (state.pending << count) | value;
  let n = state.pendingBits + count;
  while (n >= 8) {
    n -= 8;
    putByte(state, (pending >> n) & 255);
  }
  state.pending = pending & ((1 << n) - 1);
  state.pendingBits = n;
}

/** Pads the last byte with ones. */
export function padBits(state: State): void {
  const missing = 8 - state.pendingBits;
  if (missing < 8) putBits(state, (1 << missing) - 1, missing);
}

/** Writes a DC value, given its difference to the DC before. */
export function putDc(state: State, component: Component, difference: i32): void {
  const codes = codesOf(state, component.dcTable);
  const category = <u32>(32 - clz(difference < 0 ? -difference : difference));
  if (category > 11) {
    state.failed = BAD_INDEX;
    return;
  }
  const length = dcCodeLength(codes, category);
  if (length == 0) {
    state.failed = NO_CODE;
    return;
  }
  if (!isOwnCode(codes, category)) state.codesAdded++;
  putBits(state, dcCode(codes, category), length);
  if (category > 0) putBits(state, (difference < 0 ? difference - 1 : difference) & ((1 << category) - 1), category);
}

/** Copies the bits from (p, bit) up to (end, endBit) of the file. */
export function copyBits(state: State, p: usize, bit: u32, end: usize, endBit: u32): void {
  if (p > end || (p == end && bit > endBit)) {
    state.failed = BAD_INDEX;
    return;
  }
  if (p == end && bit == endBit) return;
  // The worst case: a zero stuffed after every byte, and the last vector.
  if (<u64>state.to + (<u64>(end - p) << 1) + 64 > <u64>state.toEnd) {
    state.failed = NO_ROOM;
    return;
  }
  if (bit > 0) {
    const v = <u32>load<u8>(p);
    if (p == end) {
      putBits(state, (v >> (8 - endBit)) & ((1 << (endBit - bit)) - 1), endBit - bit);
      return;
    }
    putBits(state, v & ((1 << (8 - bit)) - 1), 8 - bit);
    p += v == 0xff ? 2 : 1;
  }
  copyBytes(state, p, end);
  if (endBit > 0) putBits(state, <u32>load<u8>(end) >> (8 - endBit), endBit);
}

/** Copies whole bytes, shifted. 16 at a time if neither these nor the result contain 0xff. */
function copyBytes(state: State, from: usize, end: usize): void {
  const n = state.pendingBits;
  const mask: u32 = (1 << n) - 1;
  const ff = i8x16.splat(-1);
  const high = i8x16.splat(<i8>(0xff << (8 - n)));
  const low = i8x16.splat(<i8>(0xff >> n));
  let p = from;
  let o = state.to;
  let left = state.pending;
  let follows = false; // the byte before p is also the previous byte of the data
  while (p < end) {
    if (follows) {
      while (end - p >= 16) {
        const v = v128.load(p);
        const x = v128.or(
          v128.and(i16x8.shl(v128.load(p - 1), 8 - n), high),
          v128.and(i16x8.shr_u(v, n), low)
        );
        const hit = v128.or(i8x16.eq(v, ff), i8x16.eq(x, ff));
        v128.store(o, x);
        if (!v128.any_true(hit)) {
          p += 16;
          o += 16;
          continue;
        }
        const safe = <usize>ctz(i8x16.bitmask(hit));
        p += safe;
        o += safe;
        break;
      }
      left = <u32>load<u8>(p - 1) & mask;
      if (p >= end) break;
    }
    const v = <u32>load<u8>(p);
    const x = ((left << (8 - n)) | (v >> n)) & 255;
    store<u8>(o++, <u8>x);
    if (x == 0xff) store<u8>(o++, 0);
    left = v & mask;
    follows = v != 0xff;
    p += follows ? 1 : 2;
  }
  state.to = o;
  state.pending = left;
}
