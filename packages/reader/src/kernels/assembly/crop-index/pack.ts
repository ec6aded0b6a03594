// Packs entries: 1 byte with the number of MCUs in a group, a Rice parameter for the position and for each component, then the entries.
// An entry has Rice codes of its position (difference to the entry before) and of the DC of each component (zigzag of the difference to
// the entry one row above; in the first row to the entry before). Codes start with ones; LONGEST ones precede 32 bits without coding.
import { dcOf, ENTRY_BYTES, positionOf, State } from './state';

export const LONGEST: u32 = 24;
export const LARGEST_PARAMETER: u32 = 19;

export function entriesOfRow(state: State, group: i32): i32 {
  return (state.mcusX + group - 1) / group;
}

/** Packs `count` entries. Returns the number of bytes: at most 7 for each position and DC, plus 6. */
export function pack(state: State, entries: usize, count: i32, group: i32, target: usize): i32 {
  const fields = <usize>state.components + 1;
  const perRow = entriesOfRow(state, group);
  store<u8>(target, <u8>group);
  for (let f: usize = 0; f < fields; f++) store<u8>(target + 1 + f, <u8>parameterOf(entries, count, perRow, f));
  let p = target + 1 + fields;
  let pending: u64 = 0;
  let n: u32 = 0;
  for (let i: i32 = 0; i < count; i++) {
    const entry = entries + <usize>i * ENTRY_BYTES;
    for (let f: usize = 0; f < fields; f++) {
      const r = residual(entry, i, perRow, f);
      const k = <u32>load<u8>(target + 1 + f);
      const ones = r >> k;
      const isLong = ones >= LONGEST;
      const code: u64 = isLong
        ? (((<u64>1 << LONGEST) - 1) << 32) | <u64>r
        : ((((<u64>1 << <u64>ones) - 1) << 1) << <u64>k) | <u64>(r & ((1 << k) - 1));
      for (let left = isLong ? LONGEST + 32 : ones + 1 + k; left > 0; ) {
        const take = min<u32>(left, 8 - n);
        pending = (pending << <u64>take) | ((code >> <u64>(left - take)) & ((1 << <u64>take) - 1));
        left -= take;
        n += take;
        if (n < 8) continue;
        store<u8>(p++, <u8>pending);
        pending = 0;
        n = 0;
      }
    }
  }
  if (n > 0) store<u8>(p++, <u8>(pending << <u64>(8 - n)));
  return <i32>(p - target);
}

/** The Rice parameter that needs the fewest bits, among those near the parameter for the mean. */
function parameterOf(entries: usize, count: i32, perRow: i32, f: usize): u32 {
  let sum: u64 = 0;
  for (let i: i32 = 0; i < count; i++) sum += residual(entries + <usize>i * ENTRY_BYTES, i, perRow, f);
  const mean = sum / <u64>count;
  const middle = min<i32>(63 - <i32>clz(mean | 1), <i32>LARGEST_PARAMETER - 1);
  let best: u32 = 0;
  let fewest = u64.MAX_VALUE;
  for (let k = <u32>max(0, middle - 1); k <= <u32>middle + 1; k++) {
    let bits: u64 = 0;
    for (let i: i32 = 0; i < count; i++) {
      const ones = residual(entries + <usize>i * ENTRY_BYTES, i, perRow, f) >> k;
      bits += ones >= LONGEST ? LONGEST + 32 : ones + 1 + k;
    }
    if (bits >= fewest) continue;
    fewest = bits;
    best = k;
  }
  return best;
}

/** The value to code for field `f` of entry `i`. Field 0 is the position; the DCs follow. */
@inline function residual(entry: usize, i: i32, perRow: i32, f: usize): u32 {
  if (f == 0) return positionOf(entry) - (i > 0 ? positionOf(entry - ENTRY_BYTES) : 0);
  const from = i >= perRow ? entry - <usize>perRow * ENTRY_BYTES : entry - ENTRY_BYTES;
  const difference = dcOf(entry, f - 1) - (i > 0 ? dcOf(from, f - 1) : 0);
  return <u32>((difference << 1) ^ (difference >> 31));
}
