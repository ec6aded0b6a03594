// What the functions of the crop index know of one image, in memory that the caller gives: nothing of it is global. Numbers that
// JavaScript reads come first; kernels/crop-index.ts has their places.

// Why an image has no crop index, or a crop no small JPEG. Everything below zero means: decode as without an index.
export const NO_JPEG: i32 = -1;
export const PROGRESSIVE: i32 = -2;
export const ARITHMETIC: i32 = -3;
export const LOSSLESS: i32 = -4;
export const NOT_8_BITS: i32 = -5;
export const SEVERAL_SCANS: i32 = -6;
/** The height stands behind the first scan. */
export const HEIGHT_LATER: i32 = -7;
/** The entropy-coded data do not decode. */
export const BAD_DATA: i32 = -8;
/** Something other than the end marker is behind the scan: it could change pixels. */
export const MORE_DATA: i32 = -9;
export const TOO_LARGE: i32 = -10;
/** The index is not one of this image. */
export const BAD_INDEX: i32 = -11;
export const NO_ROOM: i32 = -12;
/** A DC table has no room for a category that it lacks. */
export const NO_CODE: i32 = -13;

/** Bit positions have 32 bits. */
export const MOST_BYTES: usize = 0x1fffffff;

@unmanaged
export class State {
  width: i32;
  height: i32;
  components: i32;
  mcuWidth: i32;
  mcuHeight: i32;
  /** MCUs in a row, and rows of them. */
  mcusX: i32;
  mcusY: i32;
  /** DC codes that the last splice used and that the image's own tables lack. */
  codesAdded: i32;
  /** MCUs from one restart marker to the next; 0 without them. */
  interval: i32;
  /** Blocks of an MCU. */
  blocks: i32;
  /** Entries that unpack has checked, and MCUs of a group in them. */
  unpacked: i32;
  group: i32;
  /** Length of the header of small JPEGs, and where in it height and width stand. */
  headBytes: i32;
  headSizeAt: i32;
  /** The file, and the first byte of its scan's data. */
  source: usize;
  sourceEnd: usize;
  scan: usize;
  // The reader of bits: its place is never at a stuffed zero.
  at: usize;
  bit: u32;
  failed: i32;
  // The writer of bits.
  to: usize;
  toEnd: usize;
  pending: u32;
  pendingBits: u32;
}

/** A colour component, and where its first DC stands in the MCU that was walked last. */
@unmanaged
export class Component {
  id: u8;
  h: u8;
  v: u8;
  quantisation: u8;
  /** Numbers of its Huffman tables: 0 to 3, and 4 to 7 for AC. */
  dcTable: u8;
  acTable: u8;
  /** The DC of the block before. */
  predictor: i32;
  firstBegin: usize;
  firstBeginBit: u32;
  firstEnd: usize;
  firstEndBit: u32;
  firstDc: i32;
}

/** One block of an MCU. */
@unmanaged
export class Block {
  component: Component;
  isFirst: i32;
  dc: Codes;
  ac: Codes;
}

/** A Huffman table as the file has it: 16 counts behind it, then up to 256 symbols. */
@unmanaged
export class RawTable {
  isPresent: u8;
  /** {@link Codes} were made of it. */
  isBuilt: u8;
}

/** What decodes, and for DC encodes: see huffman.ts. Words of it lie at the places below. */
@unmanaged
export class Codes {
  raw: RawTable;
}

const RAW_COUNTS: usize = 2;
const RAW_SYMBOLS: usize = 18;
const RAW_STRIDE: usize = 276;
const CODES_STRIDE: usize = 2304;

const COMPONENTS_AT: usize = 128;
const BLOCKS_AT: usize = 256;
const RAWS_AT: usize = 416;
const CODES_AT: usize = RAWS_AT + 8 * RAW_STRIDE;
const HEAD_AT: usize = CODES_AT + 8 * CODES_STRIDE;

/** The header of small JPEGs takes at most so much. With it the state ends, at CROP_STATE_BYTES of kernels/crop-index.ts. */
export const HEAD_ROOM: usize = 4096;

@inline export function componentOf(state: State, i: usize): Component {
  return changetype<Component>(changetype<usize>(state) + COMPONENTS_AT + i * offsetof<Component>());
}

@inline export function blockOf(state: State, i: usize): Block {
  return changetype<Block>(changetype<usize>(state) + BLOCKS_AT + i * offsetof<Block>());
}

@inline export function rawOf(state: State, table: usize): RawTable {
  return changetype<RawTable>(changetype<usize>(state) + RAWS_AT + table * RAW_STRIDE);
}

/** How many codes have `length` bits, 1 to 16, is at this address plus length - 1. */
@inline export function countsOf(raw: RawTable): usize {
  return changetype<usize>(raw) + RAW_COUNTS;
}

@inline export function symbolsOf(raw: RawTable): usize {
  return changetype<usize>(raw) + RAW_SYMBOLS;
}

@inline export function codesOf(state: State, table: usize): Codes {
  return changetype<Codes>(changetype<usize>(state) + CODES_AT + table * CODES_STRIDE);
}

@inline export function headOf(state: State): usize {
  return changetype<usize>(state) + HEAD_AT;
}

// An entry as it is worked with: where a group begins in the scan's data, in bits, and the DC of each component before it.

export const ENTRY_BYTES: usize = 12;

@inline export function positionOf(entry: usize): u32 {
  return load<u32>(entry);
}

@inline export function dcOf(entry: usize, component: usize): i32 {
  return <i32>load<i16>(entry + (component << 1), 4);
}

@inline export function setPosition(entry: usize, position: u32): void {
  store<u32>(entry, position);
}

@inline export function setDc(entry: usize, component: usize, dc: i32): void {
  store<i16>(entry + (component << 1), <i16>dc, 4);
}
