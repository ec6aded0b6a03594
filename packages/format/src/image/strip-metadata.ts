import type { ImageHeader } from './header.js';
import { stripOf } from './kinds.js';

/**
 * Removes metadata without changing a pixel: Exif with the location, XMP, IPTC, thumbnails, comments, and bytes after
 * the image. The colours (ICC profile) and the orientation (a 26-byte Exif with nothing else) stay. Returns null if the
 * image would have to be encoded again, because TIFF and AVIF mix metadata with pixel data, or if the image is damaged,
 * so that its end cannot be found. `header` is the result of `probeImage` for these bytes.
 */
export function stripMetadata(bytes: Uint8Array, { kind, orientation }: ImageHeader): Uint8Array | null {
  const exif = orientation === 1 ? null : orientationExif(orientation);
  return stripOf(kind, bytes, exif);
}

/** Exif with the single tag 0x112, a SHORT. TIFF 6.0, section 2: header, directory of one entry, no next directory. */
function orientationExif(orientation: number): Uint8Array {
  const tiff = Buffer.alloc(26);
  tiff.write('MM\0*', 'latin1');
  tiff.writeUInt32BE(8, 4);
  tiff.writeUInt16BE(1, 8);
  tiff.writeUInt16BE(0x112, 10);
  tiff.writeUInt16BE(3, 12);
  tiff.writeUInt32BE(1, 14);
  tiff.writeUInt16BE(orientation, 18);
  return tiff;
}
