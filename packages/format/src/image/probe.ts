import { ImageError, type ImageTrouble } from '@shardtool/base';
import type { ImageHeader, Precision } from './header.js';
import { imageKindOf, readHeaderOf } from './kinds.js';
import { refusedKind } from './refused.js';

export type { ImageHeader, Precision };

/**
 * Maximum number of pixels of an image, 178,956,970: Pillow raises DecompressionBombError beyond twice MAX_IMAGE_PIXELS
 * (1 GiB / 4 / 3).
 */
export const MAX_PIXELS = 2 * 89_478_485;

/**
 * Kind, size and orientation of an image by its content, whatever its name says. `bytes` is the whole file. Only its
 * header is read, in a time bounded by its length. `path` is its name, for messages. Throws {@link ImageError} for a
 * file that cannot be packed: an empty file, a file that is not an image, a header that is truncated or has no size,
 * more than `maxPixels` pixels, or an unsupported kind.
 */
export function probeImage(bytes: Uint8Array, path?: string, maxPixels = MAX_PIXELS): ImageHeader {
  const kind = imageKindOf(bytes);
  if (kind === undefined) throw unknown(bytes, path);
  const header = readHeaderOf(kind, bytes);
  if (header === 'refused') throw unknown(bytes, path);
  if (header === 'cut') throw refuse(path, 'cut', 'has a truncated header; restore it from its source');
  if (header === 'no-size') throw refuse(path, 'no-size', 'has no width or no height in its header; it is damaged');
  if (header.width * header.height > maxPixels) throw tooLarge(header, path, maxPixels);
  return header;
}

function unknown(bytes: Uint8Array, path: string | undefined): ImageError {
  if (bytes.length === 0) return refuse(path, 'empty', 'is an empty file; restore it or remove it');
  const kind = refusedKind(bytes);
  if (kind === undefined)
    return refuse(path, 'not-an-image', 'is not an image (JPEG, PNG, GIF, WebP, TIFF, AVIF, BMP, PPM, PGM or PBM)');
  const { name } = kind;
  const example = path && `, for example with "${kind.command(path, path.replace(/\.[^./]*$/, ''))}"`;
  return refuse(path, 'unsupported', `is of kind ${name}: ${name} is not supported; convert it first${example ?? ''}`);
}

function tooLarge({ width, height }: ImageHeader, path: string | undefined, maxPixels: number): ImageError {
  const claim = `claims ${width}x${height} pixels, more than the limit of ${maxPixels}`;
  return refuse(path, 'too-large', `${claim}; scale it down first, or remove it if it is damaged`);
}

function refuse(path: string | undefined, trouble: ImageTrouble, what: string): ImageError {
  return new ImageError({ path, trouble }, `${path ?? 'The file'} ${what}.`);
}
