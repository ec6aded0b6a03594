import { ImageError, type ImageTrouble } from '../errors.js';
import { heifBrand, readAvifHeader } from './avif.js';
import { readGifHeader } from './gif.js';
import { fourCC, type HeaderReader, type ImageHeader, u16be, u32be } from './header.js';
import { readJpegHeader } from './jpeg.js';
import { readPngHeader } from './png.js';
import { refusedKind } from './refused.js';
import { readTiffHeader } from './tiff.js';
import { readWebpHeader } from './webp.js';

export type { ImageHeader };

/**
 * The most pixels that an image may claim, 178,956,970: beyond twice MAX_IMAGE_PIXELS (1 GiB / 4 / 3) Pillow raises
 * DecompressionBombError.
 */
export const MAX_PIXELS = 2 * 89_478_485;

const PNG = fourCC('\x89PNG');
const PNG_END = fourCC('\r\n\x1a\n');
const GIF = fourCC('GIF8');
const RIFF = fourCC('RIFF');
const WEBP = fourCC('WEBP');
const TIFF_LITTLE = fourCC('II*\0');
const TIFF_BIG = fourCC('MM\0*');

/**
 * Kind, size and orientation of an image by its content, whatever its name says. `bytes` is the whole file; only the
 * header of it is read, in a time that its length bounds. `path` is its name, for messages. Throws {@link ImageError}
 * for what cannot be packed: an empty file, something that is no image, a header that is cut off or gives no size, more
 * than `maxPixels` pixels, a kind that is not supported.
 */
export function probeImage(bytes: Uint8Array, path?: string, maxPixels = MAX_PIXELS): ImageHeader {
  const read = readerOf(bytes);
  if (read === undefined) throw unknown(bytes, path);
  const header = read(bytes);
  if (header === 'cut') throw refuse(path, 'cut', 'is cut off in its header; restore it from where it came from');
  if (header === 'no-size') throw refuse(path, 'no-size', 'has no width or no height in its header; it is damaged');
  if (header.width * header.height > maxPixels) throw tooLarge(header, path, maxPixels);
  return header;
}

function readerOf(bytes: Uint8Array): HeaderReader | undefined {
  if (bytes.length < 4) return undefined;
  if (u16be(bytes, 0) === 0xffd8 && bytes[2] === 0xff) return readJpegHeader;
  const first = u32be(bytes, 0);
  if (first === PNG && u32be(bytes, 4) === PNG_END) return readPngHeader;
  if (first === RIFF && u32be(bytes, 8) === WEBP) return readWebpHeader;
  if (first === GIF && (bytes[4] === 0x37 || bytes[4] === 0x39) && bytes[5] === 0x61) return readGifHeader;
  if (first === TIFF_LITTLE || first === TIFF_BIG) return readTiffHeader;
  return heifBrand(bytes) === 'avif' ? readAvifHeader : undefined;
}

function unknown(bytes: Uint8Array, path: string | undefined): ImageError {
  if (bytes.length === 0) return refuse(path, 'empty', 'is an empty file; restore it or remove it');
  const kind = refusedKind(bytes);
  if (kind === undefined) return refuse(path, 'not-an-image', 'is not an image (JPEG, PNG, GIF, WebP, TIFF or AVIF)');
  const example = path && `, for example with "magick ${path} ${path.replace(/\.[^./]*$/, '')}.png"`;
  return refuse(path, 'unsupported', `is of kind ${kind}: ${kind} is not supported; convert it first${example ?? ''}`);
}

function tooLarge({ width, height }: ImageHeader, path: string | undefined, maxPixels: number): ImageError {
  const claim = `claims ${width}x${height} pixels, more than the limit of ${maxPixels}`;
  return refuse(path, 'too-large', `${claim}; scale it down first, or remove it if it is damaged`);
}

function refuse(path: string | undefined, trouble: ImageTrouble, what: string): ImageError {
  return new ImageError({ path, trouble }, `${path ?? 'The file'} ${what}.`);
}
