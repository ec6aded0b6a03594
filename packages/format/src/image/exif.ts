import { u16be, u16le, u32be, u32le } from './header.js';

/** Tags of TIFF 6.0, section 8, and of Exif 2.32, section 4.6.4. */
export const IMAGE_WIDTH = 0x100;
export const IMAGE_LENGTH = 0x101;
const ORIENTATION = 0x112;

const BYTE = 1;
const SHORT = 3;
const LONG = 4;
const UNDEFINED = 7;
const ENTRY_BYTES = 12;

/** The first directory of a TIFF structure. `start` is the offset of the structure, `end` the offset after it. */
export interface Directory {
  readonly littleEndian: boolean;
  /** Offset of the first entry. */
  readonly at: number;
  readonly entries: number;
}

/** Null if the bytes are not a TIFF structure, or end within the directory. TIFF 6.0, section 2. */
export function firstDirectory(bytes: Uint8Array, start: number, end: number): Directory | null {
  if (end - start < 8) return null;
  const order = u16be(bytes, start);
  const littleEndian = order === 0x4949;
  if (!littleEndian && order !== 0x4d4d) return null;
  if ((littleEndian ? u16le(bytes, start + 2) : u16be(bytes, start + 2)) !== 42) return null;
  const count = start + (littleEndian ? u32le(bytes, start + 4) : u32be(bytes, start + 4));
  if (count + 2 > end) return null;
  const entries = littleEndian ? u16le(bytes, count) : u16be(bytes, count);
  return count + 2 + entries * ENTRY_BYTES > end ? null : { littleEndian, at: count + 2, entries };
}

/** The value of a tag that holds one SHORT or LONG; -1 if the directory has no such tag. */
export function tagValue(bytes: Uint8Array, directory: Directory, tag: number): number {
  const { littleEndian, at, entries } = directory;
  for (let entry = at; entry < at + entries * ENTRY_BYTES; entry += ENTRY_BYTES) {
    if ((littleEndian ? u16le(bytes, entry) : u16be(bytes, entry)) !== tag) continue;
    const type = littleEndian ? u16le(bytes, entry + 2) : u16be(bytes, entry + 2);
    if (type === SHORT) return littleEndian ? u16le(bytes, entry + 8) : u16be(bytes, entry + 8);
    if (type === LONG) return littleEndian ? u32le(bytes, entry + 8) : u32be(bytes, entry + 8);
    return -1;
  }
  return -1;
}

/** The values of a tag that holds SHORTs, at most `most` of them; empty if the directory has no such tag or its offset is out of range. */
export function tagShorts(
  bytes: Uint8Array,
  { littleEndian, at, entries }: Directory,
  tag: number,
  most: number,
): readonly number[] {
  const u16 = littleEndian ? u16le : u16be;
  const u32 = littleEndian ? u32le : u32be;
  for (let entry = at; entry < at + entries * ENTRY_BYTES; entry += ENTRY_BYTES) {
    if (u16(bytes, entry) !== tag || u16(bytes, entry + 2) !== SHORT) continue;
    const count = Math.min(u32(bytes, entry + 4), most);
    const start = count <= 2 ? entry + 8 : u32(bytes, entry + 8);
    return start + 2 * count > bytes.length ? [] : Array.from({ length: count }, (_, i) => u16(bytes, start + 2 * i));
  }
  return [];
}

/** The bytes of a tag that holds more than four bytes; null if the directory has no such tag. */
export function tagBytes(bytes: Uint8Array, { littleEndian, at, entries }: Directory, tag: number): Uint8Array | null {
  const u16 = littleEndian ? u16le : u16be;
  const u32 = littleEndian ? u32le : u32be;
  for (let entry = at; entry < at + entries * ENTRY_BYTES; entry += ENTRY_BYTES) {
    if (u16(bytes, entry) !== tag) continue;
    const [type, length, start] = [u16(bytes, entry + 2), u32(bytes, entry + 4), u32(bytes, entry + 8)];
    return (type === BYTE || type === UNDEFINED) && length > 4 ? bytes.subarray(start, start + length) : null;
  }
  return null;
}

/** The value of the orientation tag of a directory; -1 if it has none. */
export function orientationTag(bytes: Uint8Array, directory: Directory | null): number {
  return directory === null ? -1 : tagValue(bytes, directory, ORIENTATION);
}

/** Length of `Exif\0\0`, which precedes the TIFF structure in a JPEG and in some WebP files. */
const PREFIX_BYTES = 6;

export function hasExifPrefix(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start >= PREFIX_BYTES && u32be(bytes, start) === 0x45786966 && u16be(bytes, start + 4) === 0;
}

/** The value of the orientation tag of Exif data, with or without the prefix; -1 if there is none. */
export function exifOrientation(bytes: Uint8Array, start: number, end: number): number {
  const tiff = hasExifPrefix(bytes, start, end) ? start + PREFIX_BYTES : start;
  return orientationTag(bytes, firstDirectory(bytes, tiff, end));
}
