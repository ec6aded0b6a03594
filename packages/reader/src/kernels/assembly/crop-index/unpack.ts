// The inverse of pack.ts. The bytes need not be valid.
import { entriesOfRow, LARGEST_PARAMETER, LONGEST } from './pack';
import { BAD_INDEX, dcOf, ENTRY_BYTES, setDc, setPosition, State } from './state';
import { load64 } from './walk';

/** Number of usable bits in a window of 64 bits, of which up to 7 are before the position. */
const WINDOW_BITS: u64 = 57;

/**
 * Unpacks the first `count` entries to `entries`, after parse. Returns the number of MCUs in a group, or an error. Positions never
 * decrease and are inside the file. Up to 8 bytes after the packed bytes are read.
 */
export function unpack(state: State, packed: usize, bytes: usize, count: i32, entries: usize): i32 {
  const components = <usize>state.components;
  state.unpacked = 0;
  if (bytes < 2 + components) return BAD_INDEX;
  const group = <i32>load<u8>(packed);
  if (group < 1) return BAD_INDEX;
  const perRow = entriesOfRow(state, group);
  if (count < 1 || count > perRow * state.mcusY + 1) return BAD_INDEX;
  for (let f: usize = 0; f <= components; f++) if (load<u8>(packed + 1 + f) > LARGEST_PARAMETER) return BAD_INDEX;
  const end = <u64>bytes << 3;
  const limit = <u64>(state.sourceEnd - state.scan) << 3;
  let position: u64 = 0;
  let b: u64 = <u64>(2 + components) << 3;
  let entry = entries;
  let above = ENTRY_BYTES; // distance in bytes to the entry that DCs are relative to
  for (let i: i32 = 0; i < count; i++, entry += ENTRY_BYTES) {
    if (b >= end) return BAD_INDEX;
    let window = load64(packed + <usize>(b >> 3)) << (b & 7);
    let used: u64 = 0;
    if (i == perRow) above = <usize>perRow * ENTRY_BYTES;
    for (let f: usize = 0; f <= components; f++) {
      const k = <u64>load<u8>(packed + 1 + f);
      let ones = clz(~window);
      let size = ones < LONGEST ? ones + 1 + k : LONGEST + 32;
      if (used + size > WINDOW_BITS) {
        b += used;
        if (b >= end) return BAD_INDEX;
        window = load64(packed + <usize>(b >> 3)) << (b & 7);
        used = 0;
        ones = clz(~window);
        size = ones < LONGEST ? ones + 1 + k : LONGEST + 32;
      }
      const r = ones < LONGEST
        ? (<u32>ones << <u32>k) | <u32>(((window << (ones + 1)) >> 1) >> (63 - k))
        : <u32>((window << LONGEST) >> 32);
      window <<= size;
      used += size;
      if (f == 0) {
        position += r;
        if (position > limit) return BAD_INDEX;
        setPosition(entry, <u32>position);
      } else {
        const from = i > 0 ? dcOf(entry - above, f - 1) : 0;
        setDc(entry, f - 1, from + (<i32>(r >> 1) ^ -<i32>(r & 1)));
      }
    }
    b += used;
  }
  if (b > end) return BAD_INDEX;
  state.unpacked = count;
  state.group = group;
  return group;
}
