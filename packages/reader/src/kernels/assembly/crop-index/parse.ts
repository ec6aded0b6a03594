// The markers of a JPEG up to its scan (ITU-T T.81, annex B).
import { writeFrame } from './head';
import {
  ARITHMETIC, Component, componentOf, countsOf, HEAD_ROOM, headOf, HEIGHT_LATER, LOSSLESS, MAX_BYTES, NO_JPEG, NOT_8_BITS,
  PROGRESSIVE, rawOf, SEVERAL_SCANS, State, symbolsOf, TOO_LARGE
} from './state';

const SOI: u16 = 0xd8ff;
const DHT: i32 = 0xc4;
const RST0: i32 = 0xd0;
const EOI: i32 = 0xd9;
const SOS: i32 = 0xda;
const DQT: i32 = 0xdb;
const DNL: i32 = 0xdc;
const DRI: i32 = 0xdd;
const APP0: i32 = 0xe0;
const APP14: i32 = 0xee;
/** Largest size of Huffman tables, frame and scan of a header in bytes. */
const LAST_PART: usize = 2048;

@inline function u16be(p: usize): i32 {
  return (<i32>load<u8>(p) << 8) | <i32>load<u8>(p, 1);
}

/**
 * Parses the header of the `bytes` bytes at `source`, and makes the header of small JPEGs with the same tables. The segments of JFIF
 * (without its thumbnail) and Adobe are kept, because they define the colour space. Other segments are dropped. Returns 0 or an error.
 */
export function parse(state: State, source: usize, bytes: usize): i32 {
  state.source = source;
  state.sourceEnd = source + bytes;
  state.unpacked = 0;
  state.interval = 0;
  state.width = 0;
  for (let table: usize = 0; table < 8; table++) rawOf(state, table).isPresent = 0;
  if (bytes > MAX_BYTES) return TOO_LARGE;
  const end = state.sourceEnd;
  if (bytes < 4 || load<u16>(source) != SOI) return NO_JPEG;
  let head = headOf(state);
  const headEnd = head + HEAD_ROOM - LAST_PART;
  store<u16>(head, SOI);
  head += 2;
  let hasJfif = false;
  let hasAdobe = false;
  let frame: i32 = 0;
  for (let p = source + 2; end - p >= 4; ) {
    if (load<u8>(p) != 0xff) return NO_JPEG;
    const marker = <i32>load<u8>(p, 1);
    if (marker == 0xff) {
      p++;
      continue;
    }
    if (hasNoLength(marker)) return NO_JPEG;
    const segment = p + 4;
    const length = <usize>u16be(p + 2);
    if (length < 2 || length > end - p - 2) return NO_JPEG;
    p += 2 + length;
    if (marker == APP0 && !hasJfif && length >= 16 && load<u32>(segment) == 0x4649464a && load<u8>(segment, 4) == 0) {
      hasJfif = true;
      store<u32>(head, 0x1000e0ff);
      memory.copy(head + 4, segment, 12);
      store<u16>(head, 0, 16);
      head += 18;
    } else if (marker == APP14 && !hasAdobe && length >= 14 && load<u32>(segment) == 0x626f6441 && load<u8>(segment, 4) == 0x65) {
      hasAdobe = true;
      store<u32>(head, 0x0e00eeff);
      memory.copy(head + 4, segment, 12);
      head += 16;
    } else if (marker == DQT) {
      if (length + 2 + 64 > headEnd - head) return TOO_LARGE;
      memory.copy(head, segment - 4, length + 2);
      head += length + 2;
    } else if (marker == DHT) {
      if (!takeTables(state, segment, p)) return NO_JPEG;
    } else if (marker == DRI) {
      if (length != 4) return NO_JPEG;
      state.interval = u16be(segment);
    } else if (marker == SOS) {
      if (frame == 0) return NO_JPEG;
      const error = takeScan(state, segment, length);
      if (error < 0) return error;
      state.scan = p;
      return writeFrame(state, head, frame);
    } else if (isFrame(marker)) {
      const error = refusalOf(marker);
      if (error < 0) return error;
      if (frame != 0) return NO_JPEG;
      frame = marker;
      const wrong = takeFrame(state, segment, length);
      if (wrong < 0) return wrong;
    } else if (marker == DNL) return HEIGHT_LATER;
  }
  return NO_JPEG;
}

/** Markers without a length, such as RST0 to RST7, SOI and EOI. They do not occur in a header that libjpeg reads without a warning. */
@inline function hasNoLength(marker: i32): bool {
  return marker < 0xc0 || (marker >= RST0 && marker <= EOI);
}

/** SOF0 to SOF15, JPG and DAC. */
@inline function isFrame(marker: i32): bool {
  return marker >= 0xc0 && marker <= 0xcf;
}

/** The error for a frame marker. 0 for the frames of Huffman-coded sequential images. */
function refusalOf(marker: i32): i32 {
  if (marker <= 0xc1) return 0;
  if (marker == 0xc2 || marker == 0xc6) return PROGRESSIVE;
  if (marker == 0xc3 || marker == 0xc7) return LOSSLESS;
  return marker == 0xc5 || marker == 0xc8 ? NO_JPEG : ARITHMETIC;
}

function takeTables(state: State, segment: usize, end: usize): bool {
  for (let p = segment; p < end; ) {
    if (end - p < 17) return false;
    const kind = load<u8>(p);
    if ((kind & 0xef) > 3) return false;
    let count: usize = 0;
    for (let i: usize = 1; i <= 16; i++) count += load<u8>(p + i);
    if (count > 256 || count > end - p - 17) return false;
    const raw = rawOf(state, <usize>((kind & 3) | ((kind >> 4) << 2)));
    // Most images have the same tables as the image before.
    if (raw.isBuilt == 0 || memory.compare(countsOf(raw), p + 1, 16) != 0 || memory.compare(symbolsOf(raw), p + 17, count) != 0) {
      memory.copy(countsOf(raw), p + 1, 16);
      memory.copy(symbolsOf(raw), p + 17, count);
      raw.isBuilt = 0;
    }
    raw.isPresent = 1;
    p += 17 + count;
  }
  return true;
}

function takeFrame(state: State, segment: usize, length: usize): i32 {
  if (length < 11) return NO_JPEG;
  if (load<u8>(segment) != 8) return NOT_8_BITS;
  const count = <usize>load<u8>(segment, 5);
  if (count < 1 || count > 4 || length != 8 + 3 * count) return NO_JPEG;
  state.height = u16be(segment + 1);
  state.width = u16be(segment + 3);
  state.components = <i32>count;
  if (state.width == 0) return NO_JPEG;
  if (state.height == 0) return HEIGHT_LATER;
  for (let i: usize = 0; i < count; i++) {
    const component = componentOf(state, i);
    const at = segment + 6 + i * 3;
    component.id = load<u8>(at);
    component.h = load<u8>(at, 1) >> 4;
    component.v = load<u8>(at, 1) & 15;
    component.quantisation = load<u8>(at, 2);
    if (component.h < 1 || component.h > 4 || component.v < 1 || component.v > 4) return NO_JPEG;
  }
  return 0;
}

function takeScan(state: State, segment: usize, length: usize): i32 {
  const count = <usize>load<u8>(segment);
  if (count != <usize>state.components) return SEVERAL_SCANS;
  if (length != 6 + 2 * count) return NO_JPEG;
  for (let i: usize = 0; i < count; i++) {
    const component = componentOf(state, i);
    if (load<u8>(segment + 1 + i * 2) != component.id) return NO_JPEG;
    const tables = load<u8>(segment + 2 + i * 2);
    if ((tables & 0xcc) != 0) return NO_JPEG;
    component.dcTable = tables >> 4;
    component.acTable = (tables & 15) + 4;
  }
  // Spectral selection 0 to 63 and successive approximation 0: other values only occur in progressive images.
  const rest = segment + 1 + 2 * count;
  return load<u8>(rest) == 0 && load<u8>(rest, 1) == 63 && load<u8>(rest, 2) == 0 ? 0 : NO_JPEG;
}
