import type { ImageKind } from './kinds.js';

/** What the header of an image says. */
export interface ImageHeader {
  readonly kind: ImageKind;
  /** In pixels, as stored: an orientation of 5 to 8 turns the picture on its side. */
  readonly width: number;
  readonly height: number;
  /** EXIF orientation 1..8; 1 where the image names none. */
  readonly orientation: number;
  /** What pixels of 8 bits a channel do not hold of its values. Absent if they hold all. */
  readonly precision?: Precision;
}

/**
 * `narrowed`: values of more than 8 bits, of which a decoder keeps the upper 8. `refused`: floating-point, signed or longer values,
 * of which it cannot make pixels.
 */
export type Precision = 'narrowed' | 'refused';

/** Why a header of a known kind gives no size: it ends before it does, or it says none. */
export type HeaderTrouble = 'cut' | 'no-size';

/** Reads the header of one kind of image from the bytes of the whole file, whose first bytes are known to be right. */
export type HeaderReader = (bytes: Uint8Array) => ImageHeader | HeaderTrouble;

/** Big-endian numbers. The caller has checked that the bytes are there. */
export function u16be(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

export function u32be(bytes: Uint8Array, at: number): number {
  return u16be(bytes, at) * 0x10000 + u16be(bytes, at + 2);
}

/** Little-endian numbers. */
export function u16le(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8);
}

export function u32le(bytes: Uint8Array, at: number): number {
  return u16le(bytes, at + 2) * 0x10000 + u16le(bytes, at);
}

/** The number that four ASCII letters make, for comparing with {@link u32be}. */
export function fourCC(letters: string): number {
  return u32be(Buffer.from(letters, 'latin1'), 0);
}
