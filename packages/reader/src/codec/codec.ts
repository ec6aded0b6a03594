import type { Scratch } from './scratch.js';

/** The ways to decode a JPEG, fastest first. */
export type CodecName = 'turbojpeg' | 'sharp';

/** A rectangle in pixels. */
export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** What an image's header says. Sizes in pixels, as stored: the EXIF orientation is not applied. */
export interface ImageHeader {
  readonly width: number;
  readonly height: number;
  /** Whether {@link ImageCodec.decodeRegion} can shrink this image. */
  readonly reducible: boolean;
  /** Its values have more than 8 bits, and the pixels have the upper 8. Absent means false. */
  readonly isNarrowed?: boolean;
}

/** Decoded pixels in the scratch: 8-bit RGB, 3 bytes a pixel. */
export interface Pixels {
  /** Address of the first pixel asked for. */
  readonly offset: number;
  /** Bytes from one row to the next. */
  readonly stride: number;
  /** Things that were odd in the data, although the pixels could be decoded. */
  readonly warnings: number;
}

/** A decoder may shrink by a power of two while it decodes; 1 is full size. */
export type Reduction = 1 | 2 | 4 | 8;

/**
 * One way to decode images: an object of functions over the decoder's native state. It has one image at a time:
 * {@link header} comes first, then {@link decodeRegion} or {@link check} of the same bytes. All throw (or reject with) a
 * SampleDecodeError, after which the codec is as good as new.
 */
export interface ImageCodec {
  readonly name: CodecName | 'gif' | 'npy';
  header(bytes: Uint8Array): ImageHeader;
  /**
   * Decodes `crop` into the scratch. With a reduction r, `crop` is a part of the image of ceil(width / r) x
   * ceil(height / r) pixels. The pixels are exactly those of a full decode. Bad is a fatal error, or data that end within
   * the pixels asked for; other damage is a warning.
   */
  decodeRegion(bytes: Uint8Array, crop: Rect, reduction: Reduction, scratch: Scratch): Pixels | Promise<Pixels>;
  /** Decodes all of the image and keeps nothing. The number of warnings; bad is also any premature end of the data. */
  check(bytes: Uint8Array): number | Promise<number>;
  close(): void;
}
