// Entropy-coded data, MCU by MCU (ITU-T T.81, F.2.2). Coefficients are stepped over; only DCs are kept.
//
// A place is a byte and a bit in it; it is never a zero that was stuffed behind 0xff. Up to SOURCE_SLACK bytes behind the file
// are read (one block beyond its end) and lead to an error.
import { lookUp, lookUpLong } from './huffman';
import { BAD_DATA, blockOf, Component, componentOf, ENTRY_BYTES, MORE_DATA, setDc, setPosition, State } from './state';

/** A refill leaves at least so many bits: the longest AC code and its value have 26. */
const REFILL_AT: u32 = 31;

@inline export function load64(p: usize): u64 {
  const x = v128.load64_zero(p);
  return v128.extract_lane<u64>(v128.shuffle<u8>(x, x, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8), 0);
}

@inline function hasFF(x: u64): bool {
  return ((~x - 0x0101010101010101) & x & 0x8080808080808080) != 0;
}

/** The next 8 bytes at `p`, without stuffed zeros; zeros from a marker on. */
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

/** The place `bytes` bytes of data further. */
export function skip(p: usize, bytes: u32): usize {
  for (; bytes > 0; bytes--) p += load<u8>(p) == 0xff && load<u8>(p, 1) == 0 ? 2 : 1;
  return p;
}

/** Walks one MCU. With `firsts` it keeps where the first DC of each component stands, and goes no further than the last of them. */
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

/** Goes behind the restart marker that follows. */
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

/** Where the marker behind the data is, after padding bits and fill bytes. */
function markerFrom(state: State): usize {
  let at = state.bit > 0 ? skip(state.at, 1) : state.at;
  while (at + 1 < state.sourceEnd && load<u8>(at) == 0xff && load<u8>(at, 1) == 0xff) at++;
  return at;
}

/**
 * After parse: an entry for each group of `group` MCUs, every row beginning a new one, and one for the end. Their number, or an
 * error. The place of an entry is where the MCU before ends, so that a restart marker lies behind it, and its DCs are those before
 * the restart: a splice needs both ends.
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
