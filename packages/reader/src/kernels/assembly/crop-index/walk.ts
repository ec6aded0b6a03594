// Walks entropy-coded data MCU by MCU (ITU-T T.81, F.2.2). AC coefficients are skipped; only DCs are kept.
//
// A position is a byte and a bit in it. It is never at a zero that was stuffed after 0xff. Up to CROP_SOURCE_SLACK_BYTES of
// kernels/crop-index.ts after the file are read (one block beyond its end), which leads to an error.
import { lookUp, lookUpLong } from './huffman';
import { BAD_DATA, blockOf, Component, componentOf, ENTRY_BYTES, MORE_DATA, setDc, setPosition, State } from './state';

/** Fewest bits after a refill. The longest AC code with its value has 26. */
const REFILL_AT: u32 = 31;

@inline export function load64(p: usize): u64 {
  const x = v128.load64_zero(p);
  return v128.extract_lane<u64>(v128.shuffle<u8>(x, x, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8), 0);
}

@inline function hasFF(x: u64): bool {
  return ((~x - 0x0101010101010101) & x & 0x8080808080808080) != 0;
}

/** The next 8 bytes at `p`, without stuffed zeros. From a marker on, they are zeros. */
function gather(p: usize): u64 {
  let x: u64 = 0;
  for (let i: i32 = 0; i < 8; i++) {
    const v = <u64>load<u8>(p);
    if (v == 0xff) {
      if (load<u8>(p, 1) != 0) return x << (<u64>(8 - i) << 3);
      p++;
    }
    p++;
    x = (x << 8) | v;
  }
  return x;
}

/** The address after `bytes` bytes of data. */
export function skip(p: usize, bytes: u32): usize {
  for (; bytes > 0; bytes--) p += load<u8>(p) == 0xff && load<u8>(p, 1) == 0 ? 2 : 1;
  return p;
}

/** Walks one MCU. With `firsts`, it records the position of the first DC of each component, and stops after the last of these. */
export function walkMcu(state: State, firsts: bool): void {
  const blocks = <usize>state.blocks;
  const sourceEnd = state.sourceEnd;
  let p = state.at;
  let bit = state.bit;
  for (let i: usize = 0; i < blocks; i++) {
    if (p > sourceEnd) {
      state.failed = BAD_DATA;
      break;
    }
    const block = blockOf(state, i);
    const component = block.component;
    const ac = block.ac;
    let x = load64(p);
    let ff = hasFF(x);
    if (ff) x = gather(p);
    let bits = x << <u64>bit;
    let entry = lookUp(block.dc, bits);
    if (entry == 0) entry = lookUpLong(state, block.dc, bits, false);
    const category = entry >> 8;
    let used = (entry & 31) + category;
    let difference: i32 = 0;
    if (category > 0) {
      difference = <i32>((bits << <u64>(entry & 31)) >> <u64>(64 - category));
      if (difference < 1 << (category - 1)) difference -= (1 << category) - 1;
    }
    bits <<= <u64>used;
    component.predictor += difference;
    if (firsts && block.isFirst != 0) {
      component.firstBegin = p;
      component.firstBeginBit = bit;
      component.firstEnd = behind(p, bit + used, ff);
      component.firstEndBit = (bit + used) & 7;
      component.firstDc = component.predictor;
      if (component == componentOf(state, <usize>state.components - 1)) return;
    }
    for (let k: u32 = 1; k < 64; ) {
      if (used > REFILL_AT) {
        p = behind(p, bit + used, ff);
        bit = (bit + used) & 7;
        used = 0;
        x = load64(p);
        ff = hasFF(x);
        if (ff) x = gather(p);
        bits = x << <u64>bit;
      }
      entry = lookUp(ac, bits);
      if (entry == 0) entry = lookUpLong(state, ac, bits, true);
      bits <<= <u64>(entry & 31);
      used += entry & 31;
      k += entry >> 8;
    }
    p = behind(p, bit + used, ff);
    bit = (bit + used) & 7;
  }
  state.at = p;
  state.bit = bit;
}

@inline function behind(p: usize, bits: u32, ff: bool): usize {
  return ff ? skip(p, bits >> 3) : p + (bits >> 3);
}

/** Moves past the next restart marker. */
export function passRestart(state: State): void {
  const at = markerFrom(state);
  if (at + 2 > state.sourceEnd || load<u8>(at) != 0xff || (load<u8>(at, 1) & 0xf8) != 0xd0) {
    state.failed = BAD_DATA;
    return;
  }
  state.at = at + 2;
  state.bit = 0;
  clearPredictors(state);
}

export function clearPredictors(state: State): void {
  for (let c: usize = 0; c < 4; c++) componentOf(state, c).predictor = 0;
}

/** The address of the marker after the data, past padding bits and fill bytes. */
function markerFrom(state: State): usize {
  let at = state.bit > 0 ? skip(state.at, 1) : state.at;
  while (at + 1 < state.sourceEnd && load<u8>(at) == 0xff && load<u8>(at, 1) == 0xff) at++;
  return at;
}

/**
 * Makes the entries, after parse: one for each group of `group` MCUs, where every row starts a new group, and one for the end. Returns
 * their number, or an error. The position of an entry is the end of the MCU before. So a restart marker comes after this position, and
 * the DCs are those before the restart, because a splice needs both ends.
 */
export function walk(state: State, group: i32, entries: usize): i32 {
  const mcusX = state.mcusX;
  const mcusY = state.mcusY;
  const interval = state.interval;
  state.at = state.scan;
  state.bit = 0;
  state.failed = 0;
  clearPredictors(state);
  let left = interval;
  let entry = entries;
  for (let y: i32 = 0; y < mcusY; y++) {
    for (let x: i32 = 0, next: i32 = 0; x < mcusX; x++) {
      if (x == next) {
        keepEntry(state, entry);
        entry += ENTRY_BYTES;
        next += group;
      }
      if (interval > 0) {
        if (left == 0) {
          passRestart(state);
          left = interval;
        }
        left--;
      }
      walkMcu(state, false);
      if (state.failed < 0) return state.failed;
    }
  }
  keepEntry(state, entry);
  entry += ENTRY_BYTES;
  if (state.failed < 0) return state.failed;
  const at = markerFrom(state);
  if (at + 2 > state.sourceEnd || load<u8>(at) != 0xff || load<u8>(at, 1) != 0xd9) return MORE_DATA;
  return <i32>((entry - entries) / ENTRY_BYTES);
}

function keepEntry(state: State, entry: usize): void {
  setPosition(entry, (<u32>(state.at - state.scan) << 3) | state.bit);
  for (let c: usize = 0; c < 4; c++) {
    const dc = c < <usize>state.components ? componentOf(state, c).predictor : 0;
    if (dc != <i32><i16>dc) state.failed = BAD_DATA;
    setDc(entry, c, dc);
  }
}
