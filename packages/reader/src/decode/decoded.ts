/** What a decoder is told of an image, and what it says of it. */
import type { Size } from '../transform/crops.js';

/** Which sample it is, and when: all that its random numbers depend on, besides the seed. */
export interface SampleIdentity {
  readonly epoch: number;
  /** The dataset of a mixture that it is from; else 0. */
  readonly source: number;
  /** The sample's number in its dataset. */
  readonly number: number;
  /** How often it came before in this epoch. */
  readonly occurrence: number;
  /** EXIF orientation 1 to 8. */
  readonly orientation: number;
  /** Number of its batch's size, where there are several. */
  readonly bucket?: number;
}

/**
 * Which part of an image its row shows: the size of the image as it is shown, that size when it was resized, and where the row
 * begins there, counted in the row's own mirror image where that was flipped. In pixels.
 */
export interface ShownPart {
  readonly original: Size;
  readonly resized: Size;
  readonly left: number;
  readonly top: number;
}

/** A decoded image in memory of its own. `pixels` are bytes in the transform's layout. */
export interface DecodedImage {
  readonly pixels: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** A mask of a sample as it is stored, of the size of its image. */
export interface StoredMask {
  /** For messages. */
  readonly field: string;
  readonly bytes: Uint8Array;
}

/** A further image or a mask of a sample, of the size of its image. */
export interface ExtraFieldImage extends StoredMask {
  readonly kind: 'image' | 'mask';
  /** Address of the finished row: as long as that of the image, or one byte a pixel. */
  readonly target: number;
}
