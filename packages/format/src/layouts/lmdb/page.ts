/**
 * Pages of the LMDB data format, version 1, on a 64-bit little-endian machine (liblmdb 0.9, mdb.c: MDB_page, MDB_node).
 * Page n is at n times the page size in the file. Offsets in a page count from its start.
 */

/** The page size that is written. */
export const PAGE_BYTES = 4096;
/** Pages 0 and 1 are meta pages. */
export const FIRST_DATA_PAGE = 2;
/** mdb.c, MDB_MAXKEYSIZE. */
export const MAX_KEY_BYTES = 511;
export const MAX_VALUE_BYTES = 0xffffffff;

export const PAGE_HEADER_BYTES = 16;
export const NODE_HEADER_BYTES = 8;
/** A tree page has a list of 16-bit node offsets after its header. */
export const POINTER_BYTES = 2;
/** A leaf stores this in place of a large value: the number of its first page. */
export const PAGE_NUMBER_BYTES = 8;

/** mp_flags. Other bits exist only in memory. */
export const PageType = { branch: 0x01, leaf: 0x02, overflow: 0x04, meta: 0x08 } as const;
/** The bits that identify the type of a page, including those for duplicate keys. */
const TYPE_BITS = 0x6f;

/** mn_flags: the value is on overflow pages; it is a named database; it is a set of duplicates. */
export const NodeFlag = { bigData: 1, subDatabase: 2, duplicates: 4 } as const;

/** Offsets in a node's header. The length of the value, or the low half of a branch's page number, comes first. */
export const NODE_FLAGS_AT = 4;
export const NODE_KEY_BYTES_AT = 6;

/** Offsets in a page's header. */
const TYPE_AT = 10;
const LOWER_AT = 12;
const UPPER_AT = 14;
const OVERFLOW_PAGES_AT = 12;

/** The longest node, header included, that stays in its leaf: two of them fit a page (mdb.c, me_nodemax). */
export function maxNodeBytes(pageBytes: number): number {
  return (((pageBytes - PAGE_HEADER_BYTES) >> 1) & ~1) - POINTER_BYTES;
}

/** Whether a value stays in the leaf, next to its key. */
export function fitsLeaf(keyBytes: number, valueBytes: number, pageBytes: number): boolean {
  return NODE_HEADER_BYTES + keyBytes + valueBytes <= maxNodeBytes(pageBytes);
}

/** How many pages a value outside its leaf takes: a run with one header (mdb.c, OVPAGES). */
export function runPages(valueBytes: number, pageBytes: number): number {
  return Math.floor((PAGE_HEADER_BYTES - 1 + valueBytes) / pageBytes) + 1;
}

/** Nodes begin at even offsets. */
export function even(bytes: number): number {
  return bytes + (bytes & 1);
}

/** An unsigned 64-bit number; -1 above 2^53, which every range check rejects. */
export function readU64(bytes: Buffer, at: number): number {
  const high = bytes.readUInt32LE(at + 4);
  return high > 0x1fffff ? -1 : high * 2 ** 32 + bytes.readUInt32LE(at);
}

export function writeU64(bytes: Buffer, at: number, value: number): void {
  bytes.writeUInt32LE(value % 2 ** 32, at);
  bytes.writeUInt32LE(Math.floor(value / 2 ** 32), at + 4);
}

export function pageNumber(page: Buffer): number {
  return readU64(page, 0);
}

export function pageType(page: Buffer): number {
  return page.readUInt16LE(TYPE_AT) & TYPE_BITS;
}

/** The end of the list of node offsets, and the offset of the first node. */
export function pageBounds(page: Buffer): { lower: number; upper: number } {
  return { lower: page.readUInt16LE(LOWER_AT), upper: page.readUInt16LE(UPPER_AT) };
}

/** The number of pages in the run that begins with this page. */
export function pagesOfRun(page: Buffer): number {
  return page.readUInt32LE(OVERFLOW_PAGES_AT);
}

export function encodePageHeader(page: Buffer, number: number, type: number): void {
  writeU64(page, 0, number);
  page.writeUInt16LE(0, 8);
  page.writeUInt16LE(type, TYPE_AT);
}

export function encodePageBounds(page: Buffer, lower: number, upper: number): void {
  page.writeUInt16LE(lower, LOWER_AT);
  page.writeUInt16LE(upper, UPPER_AT);
}

/** Writes the header before a value on overflow pages. */
export function encodeRunHeader(page: Buffer, number: number, pages: number): void {
  encodePageHeader(page, number, PageType.overflow);
  page.writeUInt32LE(pages, OVERFLOW_PAGES_AT);
}

/** Writes a leaf's node: the value itself, or the page number of a large one, follows the key. */
export function encodeLeafNode(page: Buffer, at: number, valueBytes: number, flags: number, keyBytes: number): void {
  page.writeUInt32LE(valueBytes, at);
  page.writeUInt16LE(flags, at + NODE_FLAGS_AT);
  page.writeUInt16LE(keyBytes, at + NODE_KEY_BYTES_AT);
}

/** Writes a branch's node: all keys of `child` are at least the key that follows it. */
export function encodeBranchNode(page: Buffer, at: number, child: number, keyBytes: number): void {
  page.writeUInt32LE(child % 2 ** 32, at);
  page.writeUInt16LE(Math.floor(child / 2 ** 32), at + NODE_FLAGS_AT);
  page.writeUInt16LE(keyBytes, at + NODE_KEY_BYTES_AT);
}
