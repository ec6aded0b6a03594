import type { ImageHeader } from './header.js';
import { stripOf } from './kinds.js';

/**
 * The same image, pixel for pixel, without what a camera, a program or a person wrote beside the picture: Exif with the
 * place, XMP, IPTC, thumbnails, comments, and bytes behind the image. Its colours stay (ICC profile), and how it is to be
 * turned (an Exif of 26 bytes that says nothing else). Null if it cannot be done without encoding the image again, since TIFF
 * and AVIF keep metadata among the data of the pixels, and if the image is damaged, so that its end is not found. `header` is
 * what `probeImage` says of these bytes.
 */
export function stripMetadata(bytes: Uint8Array, { kind, orientation }: ImageHeader): Uint8Array | null {
  const exif = orientation === 1 ? null : orientationExif(orientation);
  return stripOf(kind, bytes, exif);
}

/** Exif with the one tag 0x112, a SHORT. TIFF 6.0, section 2: header, directory of one entry, no next directory. */
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
