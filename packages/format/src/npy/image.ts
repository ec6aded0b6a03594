import { NpyError } from '@shardtool/base';
import { encodeNpyHeader, type NpyHeader, readNpyHeader } from './header.js';

/** The location of the pixels of an uncompressed image: uint8 [height, width, 3]. */
export interface NpyImage {
  readonly width: number;
  readonly height: number;
  /** True if the values are in Fortran order: those of a column of one channel follow each other. */
  readonly fortranOrder: boolean;
  /** Offset of the first pixel, in bytes. */
  readonly offset: number;
}

/** The field name of an uncompressed image. */
export const NPY_FIELD = 'npy';

/** Reads the header of an array that is an image. Throws {@link NpyError} for any other array, and if pixels are missing. */
export function readNpyImage(bytes: Uint8Array): NpyImage {
  const image = probeNpyImage(bytes);
  const missing = image.offset + image.width * image.height * 3 - bytes.length;
  if (missing <= 0) return image;
  throw new NpyError({}, `it ends ${missing} bytes before its last pixel: restore it from its source`);
}

/** Like {@link readNpyImage}, for the first bytes of a file. */
export function probeNpyImage(bytes: Uint8Array): NpyImage {
  const header = readNpyHeader(bytes);
  const [height = 0, width = 0, channels = 0] = header.shape;
  const isImage = header.shape.length === 3 && channels === 3 && hasBytes(header) && width > 0 && height > 0;
  if (!isImage) {
    throw new NpyError(
      {},
      `it is an array of ${header.dtype} of the shape (${header.shape.join(', ')}), but an image must be uint8 (height, width, 3)`,
    );
  }
  return { width, height, fortranOrder: header.fortranOrder, offset: header.offset };
}

/** An image as a `.npy` file. `pixels` is [height, width, 3]. */
export function encodeNpyImage(pixels: Uint8Array, width: number, height: number): Uint8Array {
  return Buffer.concat([encodeNpyHeader('|u1', [height, width, 3]), pixels]);
}

/** Whether the values are single bytes in C order. */
export function isBytes(header: NpyHeader): boolean {
  return !header.fortranOrder && hasBytes(header);
}

function hasBytes({ dtype }: NpyHeader): boolean {
  return dtype === '|u1' || dtype === 'u1' || dtype === '<u1' || dtype === '|b1';
}
