import { heifBrand } from './avif.js';
import { fourCC, u16be, u32be } from './header.js';
import type { ImageKind } from './kind.js';

const PNG = fourCC('\x89PNG');
const PNG_END = fourCC('\r\n\x1a\n');
const GIF = fourCC('GIF8');
const RIFF = fourCC('RIFF');
const WEBP = fourCC('WEBP');
const TIFF_LITTLE = fourCC('II*\0');
const TIFF_BIG = fourCC('MM\0*');

/** So many bytes of a file tell its kind: a file type box of AVIF names its brand within them. */
export const SIGNATURE_BYTES = 64;

/** The kind of image that begins with these bytes; undefined where it is none that is packed and decoded. */
export function imageKindOf(bytes: Uint8Array): ImageKind | undefined {
  if (bytes.length < 4) return undefined;
  if (u16be(bytes, 0) === 0xffd8 && bytes[2] === 0xff) return 'jpeg';
  const first = u32be(bytes, 0);
  if (first === PNG && u32be(bytes, 4) === PNG_END) return 'png';
  if (first === RIFF && u32be(bytes, 8) === WEBP) return 'webp';
  if (first === GIF && (bytes[4] === 0x37 || bytes[4] === 0x39) && bytes[5] === 0x61) return 'gif';
  if (first === TIFF_LITTLE || first === TIFF_BIG) return 'tiff';
  return heifBrand(bytes) === 'avif' ? 'avif' : undefined;
}
