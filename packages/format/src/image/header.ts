import type { ImageKind } from './kinds.js';

/** The facts in the header of an image. */
export interface ImageHeader {
  readonly kind: ImageKind;
  /** The size in pixels, as stored: with an orientation of 5 to 8, width and height are swapped for display. */
  readonly width: number;
  readonly height: number;
  /** EXIF orientation, 1..8; 1 if the image has none. */
  readonly orientation: number;
  /** What is lost if the image is decoded to 8 bits per channel. Absent if nothing is lost. */
  readonly precision?: Precision;
}

/**
 * `narrowed`: values of more than 8 bits, of which a decoder keeps the upper 8. `refused`: floating-point, signed or
 * longer values, which cannot be decoded to pixels.
 */
export type Precision = 'narrowed' | 'refused';

/**
 * Why the header of a known kind gives no size: it is truncated, has no size, or is of an image that no codec decodes,
 * which refused.ts names.
 */
export type HeaderTrouble = 'cut' | 'no-size' | 'refused';

/** Reads the header of one kind of image from the bytes of the whole file. The caller has checked the first bytes. */
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

/** The number whose bytes are four ASCII letters, to compare with {@link u32be}. */
export function fourCC(letters: string): number {
  return u32be(Buffer.from(letters, 'latin1'), 0);
}
