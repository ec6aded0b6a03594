// Makes a small JPEG of the groups [left, right) in the rows of MCUs [top, bottom). The groups of a row are one sequence of bits, which is
// copied. Only the first DC of each component is encoded again, as the difference to the last DC of the row before. The result is one
// continuous scan, because libjpeg-turbo does not use its fast Huffman decoder with restart markers.
import { entriesOfRow } from './pack';
import { copyBits, padBits, putDc } from './put-bits';
import {
  BAD_INDEX, componentOf, dcOf, ENTRY_BYTES, HEAD_ROOM, headOf, NO_ROOM, positionOf, State
} from './state';
import { clearPredictors, passRestart, walkMcu } from './walk';

/** Largest size of the DCs of one row, or of the end, in bytes. */
const ROW_ROOM: usize = 128;

/** Writes the small JPEG to `target`, after parse and unpack. Returns its number of bytes, or an error. Nothing is written from `target + room` on. */
export function splice(
  state: State, entries: usize, left: i32, right: i32, top: i32, bottom: i32, target: usize, room: usize
): i32 {
  const group = state.group;
  if (state.unpacked == 0) return BAD_INDEX;
  const perRow = entriesOfRow(state, group);
  if (left < 0 || left >= right || right > perRow || top < 0 || top >= bottom || bottom > state.mcusY) return BAD_INDEX;
  // Later entries have not been unpacked.
  if ((bottom - 1) * perRow + right >= state.unpacked) return BAD_INDEX;
  if (room < HEAD_ROOM + ROW_ROOM) return NO_ROOM;
  const x0 = left * group;
  const x1 = min(right * group, state.mcusX);
  state.failed = 0;
  state.codesAdded = 0;
  state.toEnd = target + room;
  state.pending = 0;
  state.pendingBits = 0;
  writeHead(
    state, target,
    min(state.width, x1 * state.mcuWidth) - x0 * state.mcuWidth,
    min(state.height, bottom * state.mcuHeight) - top * state.mcuHeight
  );
  // The last DCs that the decoder of the small JPEG has seen.
  let dc0: i32 = 0, dc1: i32 = 0, dc2: i32 = 0, dc3: i32 = 0;
  for (let y = top; y < bottom; y++) {
    const row = entries + <usize>(y * perRow) * ENTRY_BYTES;
    const rowEnd = row + <usize>right * ENTRY_BYTES;
    seek(state, row + <usize>left * ENTRY_BYTES);
    for (let x = x0; x < x1; ) {
      const stop = passRestartBefore(state, x, y, x1);
      if (state.at >= state.sourceEnd) return BAD_INDEX;
      if (state.failed < 0) return state.failed;
      let p = state.at;
      let bit = state.bit;
      walkMcu(state, true);
      if (state.failed < 0) return state.failed;
      if (stop == x1) seek(state, rowEnd);
      else walkTo(state, p, bit, row, x, y, stop);
      if (state.failed < 0) return state.failed;
      const end = state.at;
      const endBit = state.bit;
      if (end > state.sourceEnd) return BAD_INDEX;
      if (<u64>state.to + ROW_ROOM > <u64>state.toEnd) return NO_ROOM;
      for (let c: usize = 0; c < <usize>state.components; c++) {
        const component = componentOf(state, c);
        copyBits(state, p, bit, component.firstBegin, component.firstBeginBit);
        putDc(state, component, component.firstDc - (c == 0 ? dc0 : c == 1 ? dc1 : c == 2 ? dc2 : dc3));
        p = component.firstEnd;
        bit = component.firstEndBit;
      }
      copyBits(state, p, bit, end, endBit);
      if (state.failed < 0) return state.failed;
      dc0 = componentOf(state, 0).predictor;
      dc1 = componentOf(state, 1).predictor;
      dc2 = componentOf(state, 2).predictor;
      dc3 = componentOf(state, 3).predictor;
      x = stop;
    }
  }
  if (<u64>state.to + 16 > <u64>state.toEnd) return NO_ROOM;
  padBits(state);
  store<u16>(state.to, 0xd9ff);
  return <i32>(state.to + 2 - target);
}

function writeHead(state: State, target: usize, width: i32, height: i32): void {
  memory.copy(target, headOf(state), state.headBytes);
  const size = target + <usize>state.headSizeAt;
  store<u8>(size, <u8>(height >> 8));
  store<u8>(size, <u8>height, 1);
  store<u8>(size, <u8>(width >> 8), 2);
  store<u8>(size, <u8>width, 3);
  state.to = target + <usize>state.headBytes;
}

/** Moves the reader to an entry, and sets the DCs at that position. */
function seek(state: State, entry: usize): void {
  const position = positionOf(entry);
  state.at = state.scan + <usize>(position >> 3);
  state.bit = position & 7;
  for (let c: usize = 0; c < 4; c++) componentOf(state, c).predictor = dcOf(entry, c);
}

/** Passes the restart marker before MCU x of row y, if there is one. Returns the MCU before which the next restart marker is, at most `x1`. */
function passRestartBefore(state: State, x: i32, y: i32, x1: i32): i32 {
  const interval = state.interval;
  if (interval == 0) return x1;
  const index = y * state.mcusX + x;
  const phase = index % interval;
  if (phase == 0 && index > 0) passRestart(state);
  return min(x + interval - phase, x1);
}

/** Walks to MCU `stop` of the row, which a restart marker precedes: from the start of its group, or from the current position if that is later. */
function walkTo(state: State, p: usize, bit: u32, row: usize, x: i32, y: i32, stop: i32): void {
  const group = state.group;
  const near = stop / group;
  let from = near * group;
  if (from > x) seek(state, row + <usize>near * ENTRY_BYTES);
  else {
    seek(state, row + <usize>(x / group) * ENTRY_BYTES);
    if ((y * state.mcusX + x) % state.interval == 0) clearPredictors(state);
    state.at = p;
    state.bit = bit;
    from = x;
  }
  for (; from < stop && state.failed == 0; from++) walkMcu(state, false);
}
