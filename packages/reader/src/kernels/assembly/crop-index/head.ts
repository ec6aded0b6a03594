// Writes the last part of the header of small JPEGs, and lays out the MCUs of the image.
import { appendMissing, buildCodes } from './huffman';
import {
  blockOf, codesOf, componentOf, countsOf, headOf, HEAD_ROOM, NO_JPEG, rawOf, State, symbolsOf, TOO_LARGE
} from './state';

/** Largest number of blocks in an MCU of a JPEG. */
const MAX_BLOCKS: usize = 10;
/** Space for what follows the Huffman tables, in bytes. */
const SCAN_ROOM: usize = 64;

/** Writes frame, Huffman tables and scan from `head` on, and lays out the blocks of an MCU. Returns 0 or an error. */
export function writeFrame(state: State, head: usize, marker: i32): i32 {
  setGrid(state);
  const error = layOutBlocks(state);
  if (error < 0) return error;
  let h = writeSize(state, head, marker);
  for (let table: usize = 0; table < 8; table++) {
    if (!isUsed(state, <u8>table)) continue;
    h = writeTable(state, h, table);
    if (h == 0) return TOO_LARGE;
  }
  state.headBytes = <i32>(writeScan(state, h) - headOf(state));
  return 0;
}

function setGrid(state: State): void {
  let h: i32 = 1;
  let v: i32 = 1;
  // The MCUs of a single component are single blocks, regardless of its sampling factors.
  if (state.components > 1) {
    for (let i: usize = 0; i < <usize>state.components; i++) {
      h = max(h, <i32>componentOf(state, i).h);
      v = max(v, <i32>componentOf(state, i).v);
    }
  }
  state.mcuWidth = 8 * h;
  state.mcuHeight = 8 * v;
  state.mcusX = (state.width + 8 * h - 1) / (8 * h);
  state.mcusY = (state.height + 8 * v - 1) / (8 * v);
}

function layOutBlocks(state: State): i32 {
  let blocks: usize = 0;
  const single = state.components == 1;
  for (let i: usize = 0; i < <usize>state.components; i++) {
    const component = componentOf(state, i);
    const dc = codesOf(state, component.dcTable);
    const ac = codesOf(state, component.acTable);
    const error = buildCodes(dc, rawOf(state, component.dcTable), false);
    if (error < 0) return error;
    const acError = buildCodes(ac, rawOf(state, component.acTable), true);
    if (acError < 0) return acError;
    const count = single ? <usize>1 : <usize>component.h * <usize>component.v;
    if (blocks + count > MAX_BLOCKS) return NO_JPEG;
    for (let j: usize = 0; j < count; j++, blocks++) {
      const block = blockOf(state, blocks);
      block.component = component;
      block.isFirst = j == 0 ? 1 : 0;
      block.dc = dc;
      block.ac = ac;
    }
  }
  state.blocks = <i32>blocks;
  return 0;
}

function writeSize(state: State, head: usize, marker: i32): usize {
  const count = <usize>state.components;
  store<u8>(head, 0xff);
  store<u8>(head, <u8>marker, 1);
  store<u8>(head, 0, 2);
  store<u8>(head, <u8>(8 + 3 * count), 3);
  store<u8>(head, 8, 4);
  state.headSizeAt = <i32>(head + 5 - headOf(state));
  store<u8>(head, <u8>count, 9);
  let h = head + 10;
  for (let i: usize = 0; i < count; i++, h += 3) {
    const component = componentOf(state, i);
    store<u8>(h, component.id);
    store<u8>(h, count == 1 ? 0x11 : (component.h << 4) | component.v, 1);
    store<u8>(h, component.quantisation, 2);
  }
  return h;
}

function isUsed(state: State, table: u8): bool {
  for (let i: usize = 0; i < <usize>state.components; i++) {
    const component = componentOf(state, i);
    if ((table < 4 ? component.dcTable : component.acTable) == table) return true;
  }
  return false;
}

/** Writes a Huffman table. Returns the address after it, or 0 if there is not enough space. */
function writeTable(state: State, head: usize, table: usize): usize {
  const raw = rawOf(state, table);
  const counts = head + 5;
  const symbols = head + 21;
  let count: usize = 0;
  for (let i: usize = 0; i < 16; i++) count += load<u8>(countsOf(raw) + i);
  if (symbols + count + 16 + SCAN_ROOM > headOf(state) + HEAD_ROOM) return 0;
  memory.copy(counts, countsOf(raw), 16);
  memory.copy(symbols, symbolsOf(raw), count);
  if (table < 4) count = appendMissing(codesOf(state, table), counts, symbols, count);
  store<u16>(head, 0xc4ff);
  store<u8>(head, <u8>((19 + count) >> 8), 2);
  store<u8>(head, <u8>(19 + count), 3);
  store<u8>(head, <u8>(table < 4 ? table : (table - 4) | 16), 4);
  return symbols + count;
}

function writeScan(state: State, head: usize): usize {
  const count = <usize>state.components;
  store<u16>(head, 0xdaff);
  store<u8>(head, 0, 2);
  store<u8>(head, <u8>(6 + 2 * count), 3);
  store<u8>(head, <u8>count, 4);
  let h = head + 5;
  for (let i: usize = 0; i < count; i++, h += 2) {
    const component = componentOf(state, i);
    store<u8>(h, component.id);
    store<u8>(h, (component.dcTable << 4) | (component.acTable - 4), 1);
  }
  store<u8>(h, 0);
  store<u8>(h, 63, 1);
  store<u8>(h, 0, 2);
  return h + 3;
}
