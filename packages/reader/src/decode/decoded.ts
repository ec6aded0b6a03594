import type { Size } from '../codec/codec.js';
/** Inputs and outputs of the decoder. */

/** Identifies a sample and its occurrence. Together with the seed, this determines its random numbers. */
export interface SampleIdentity {
  readonly epoch: number;
  /** Index of the sample's dataset in a mixture. 0 if there is no mixture. */
  readonly source: number;
  /** Index of the sample in its dataset. */
  readonly number: number;
  /** How often the sample appeared before in this epoch. */
  readonly occurrence: number;
  /** EXIF orientation 1 to 8. */
  readonly orientation: number;
  /** Which random numbers of the sample are used: those of view `view` - 1, or 0 for those of its only image. Default: 0. */
  readonly view?: number;
  /** Index of the size of the sample's batch, if batches have several sizes. */
  readonly bucket?: number;
}

/**
 * The part of an image that a row of the batch shows, in pixels: the size of the upright image, its size after
 * resizing, and the position of the row in the resized image. If the row is flipped, the position refers to the
 * mirrored image.
 */
export interface ShownPart {
  readonly original: Size;
  readonly resized: Size;
  readonly left: number;
  readonly top: number;
}

/** A decoded image that does not share memory with the decoder. `pixels` are bytes in the transform's layout. */
export interface DecodedImage {
  readonly pixels: Uint8Array<ArrayBuffer>;
  readonly width: number;
  readonly height: number;
}

/** The encoded mask of a sample. It must have the size of the image. */
export interface StoredMask {
  /** Name of the field, for messages. */
  readonly field: string;
  readonly bytes: Uint8Array;
}

/** An extra image or a mask of a sample. It must have the size of the image. */
export interface ExtraFieldImage extends StoredMask {
  readonly kind: 'image' | 'mask';
  /** Address of the finished row. An image takes as many bytes as the main image, a mask one byte per pixel. */
  readonly target: number;
}
