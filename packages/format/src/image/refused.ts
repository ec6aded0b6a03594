import { heifBrand } from './avif.js';
import { u16be, u32be, u32le } from './header.js';

/** Lengths of the second header of a BMP file, by version. */
const BMP_HEADERS = new Set([12, 40, 52, 56, 64, 108, 124]);

/** The name of an unsupported kind of image, so that the error can name it; undefined for anything else. */
export function refusedKind(bytes: Uint8Array): string | undefined {
  if (bytes.length < 12) return undefined;
  const first = u32be(bytes, 0);
  const second = u32be(bytes, 4);
  if (heifBrand(bytes) === 'heif') return 'HEIC';
  if (u16be(bytes, 0) === 0x424d && bytes.length >= 18 && BMP_HEADERS.has(u32le(bytes, 14))) return 'BMP';
  if (first === 0x49492b00 || first === 0x4d4d002b) return 'BigTIFF';
  if (u16be(bytes, 0) === 0xff0a || (first === 12 && second === 0x4a584c20)) return 'JPEG XL';
  if (first === 0xff4fff51 || (first === 12 && second === 0x6a502020)) return 'JPEG 2000';
  if (first === 0x38425053) return 'PSD';
  if (first === 0x716f6966) return 'QOI';
  if (first === 0x00000100) return 'ICO';
  if (bytes[0] === 0x50 && bytes[1]! >= 0x31 && bytes[1]! <= 0x37 && bytes[2]! <= 0x20) return 'PNM';
  return undefined;
}
