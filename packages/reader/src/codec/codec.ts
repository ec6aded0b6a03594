import type { Scratch } from './scratch.js';

/** The ways to decode a JPEG, fastest first. */
export type CodecName = 'turbojpeg' | 'sharp';

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** A rectangle in pixels. */
export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The header of an image. Sizes are in pixels, as stored: the EXIF orientation is not applied. */
export interface ImageHeader {
  readonly width: number;
  readonly height: number;
  /** Whether {@link ImageCodec.decodeRegion} can shrink this image. */
  readonly reducible: boolean;
  /** The stored values have more than 8 bits, of which the pixels keep the upper 8. Default: false. */
  readonly isNarrowed?: boolean;
}

/** Decoded pixels in scratch memory: 8-bit RGB, 3 bytes per pixel. */
export interface Pixels {
  /** Address of the first pixel of the crop. */
  readonly offset: number;
  /** Number of bytes from one row to the next. */
  readonly stride: number;
  /** Number of decoder warnings: damage that does not affect the requested pixels, or oddities of the file. */
  readonly warnings: number;
}

/** The factor by which a decoder shrinks the image while decoding. 1 is full size. */
export type Reduction = 1 | 2 | 4 | 8;

/**
 * One way to decode images. A codec handles one image at a time: call {@link header} first, then {@link decodeRegion} or
 * {@link check} with the same bytes. All of them throw, or reject with, SampleDecodeError. The codec can be used again after an
 * error.
 */
export interface ImageCodec {
  readonly name: CodecName | 'own' | 'npy';
  header(bytes: Uint8Array): ImageHeader;
  /**
   * Decodes `crop` into scratch memory. With a reduction r, `crop` refers to the image of ceil(width / r) x ceil(height / r)
   * pixels. The pixels are exactly those of a full decode. It is an error if decoding fails or if the data end within the
   * requested pixels. Other damage is a warning.
   */
  decodeRegion(bytes: Uint8Array, crop: Rect, reduction: Reduction, scratch: Scratch): Pixels | Promise<Pixels>;
  /** Decodes the whole image and discards the pixels. Returns the number of warnings. Any premature end of the data is an error. */
  check(bytes: Uint8Array): number | Promise<number>;
  close(): void;
}
