// The state of the crop index functions for one image, in memory of the caller. There are no globals. The numbers that JavaScript reads
// come first, at the offsets that kernels/crop-index.ts uses.

// Errors: why an image cannot have a crop index, or a crop cannot become a small JPEG. Then the image is decoded without an index.
export const NO_JPEG: i32 = -1;
export const PROGRESSIVE: i32 = -2;
export const ARITHMETIC: i32 = -3;
export const LOSSLESS: i32 = -4;
export const NOT_8_BITS: i32 = -5;
export const SEVERAL_SCANS: i32 = -6;
/** The height is defined after the first scan. */
export const HEIGHT_LATER: i32 = -7;
/** The entropy-coded data are damaged. */
export const BAD_DATA: i32 = -8;
/** Something other than the end marker follows the scan. It could change pixels. */
export const MORE_DATA: i32 = -9;
export const TOO_LARGE: i32 = -10;
/** The index does not belong to this image. */
export const BAD_INDEX: i32 = -11;
export const NO_ROOM: i32 = -12;
/** A DC table has no free code for a category that it lacks. */
export const NO_CODE: i32 = -13;

/** Largest image in bytes, because bit positions have 32 bits. */
export const MAX_BYTES: usize = 0x1fffffff;

@unmanaged
export class State {
  width: i32;
  height: i32;
  components: i32;
  mcuWidth: i32;
  mcuHeight: i32;
  /** Number of MCUs in a row. */
  mcusX: i32;
  /** Number of rows of MCUs. */
  mcusY: i32;
  /** Number of DC codes that the last splice had to add to the tables of the image. */
  codesAdded: i32;
  /** Number of MCUs from one restart marker to the next. 0 if there are no restart markers. */
  interval: i32;
  /** Number of blocks in an MCU. */
  blocks: i32;
  /** Number of entries that unpack has checked. */
  unpacked: i32;
  /** Number of MCUs in a group of these entries. */
  group: i32;
  /** Length of the header of small JPEGs in bytes. */
  headBytes: i32;
  /** Offset of height and width in this header. */
  headSizeAt: i32;
  /** The file, and the first byte of the data of its scan. */
  source: usize;
  sourceEnd: usize;
  scan: usize;
  // The bit reader. Its position is never at a stuffed zero.
  at: usize;
  bit: u32;
  failed: i32;
  // The bit writer.
  to: usize;
  toEnd: usize;
  pending: u32;
  pendingBits: u32;
}

/** A colour component, and the position of its first DC in the last MCU that was walked. */
@unmanaged
export class Component {
  id: u8;
  h: u8;
  v: u8;
  quantisation: u8;
  /** Indices of its Huffman tables: 0 to 3 for DC, 4 to 7 for AC. */
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

/** A Huffman table as stored in the file. 16 counts follow this class, then up to 256 symbols. */
@unmanaged
export class RawTable {
  isPresent: u8;
  /** {@link Codes} have been made from this table. */
  isBuilt: u8;
}

/** A table for decoding and, for DC, encoding: see huffman.ts. Its parts follow at fixed offsets. */
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

/** Largest size of the header of small JPEGs in bytes. It is the last part of the state, whose size is CROP_STATE_BYTES of kernels/crop-index.ts. */
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

/** Address of the counts of codes: the number of codes with `length` bits, 1 to 16, is at this address + length - 1. */
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

// An unpacked entry: the position in bits where a group starts in the data of the scan, and the DC of each component before it.

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
